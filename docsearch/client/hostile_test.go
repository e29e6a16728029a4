package client_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/mcp-sse/mcp-sse/docsearch/client"
)

func TestLastWordsAreHarmless(t *testing.T) {
	_, err := ask(t.Context(), newClient(t, stateDir(t), modeExits, client.Options{}), "q")
	wantDown(t, err, "first line[2J end | cannot open the index")
	if strings.ContainsFunc(err.Error(), func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }) {
		t.Errorf("a control character is in %q", err)
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	for _, name := range []string{"daemon.log", "start.lock"} {
		t.Run(name, func(t *testing.T) {
			dir, victim := stateDir(t), filepath.Join(t.TempDir(), "victim")
			if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			_, err := ask(t.Context(), newClient(t, dir, modeGood, client.Options{}), "q")
			wantDown(t, err, name)
			if _, err := os.Lstat(victim); err == nil {
				t.Error("the file that the link names is there")
			}
			wantStarts(t, dir, 0)
		})
	}
}

func TestLongLogBehindALinkIsNotCut(t *testing.T) {
	dir, victim := stateDir(t), filepath.Join(t.TempDir(), "victim")
	text := strings.Repeat("a line\n", 100_000)
	if err := os.WriteFile(victim, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "daemon.log")); err != nil {
		t.Fatal(err)
	}
	_, err := ask(t.Context(), newClient(t, dir, modeGood, client.Options{}), "q")
	wantDown(t, err, "daemon.log")
	if got, _ := os.ReadFile(victim); string(got) != text {
		t.Errorf("the target has %d bytes, want %d", len(got), len(text))
	}
}

func TestDirectoryThatOthersCanWrite(t *testing.T) {
	dir := stateDir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := ask(t.Context(), newClient(t, dir, modeGood, client.Options{}), "q")
	wantDown(t, err, "chmod 700")
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
