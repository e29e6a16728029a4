package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/background"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Why a shared server has ended is what it says itself, now: its log also has what servers have written, and what was
// there before.
func TestWhyASharedServerEndedIsItsOwnLine(t *testing.T) {
	t.Setenv(childVariable, asProgram)
	c := mustLoad(t, clitest.State(t), "stdio", "--connect", "http://127.0.0.1:8080/mcp", "--", "x")
	log := filepath.Join(c.StateDir, "daemon-8080.log")
	ssetest.Must(t, os.MkdirAll(c.StateDir, 0o700))
	ssetest.Must(t, os.WriteFile(log, []byte("sse-server: of an earlier one\nPASSWORD=secret\n"), 0o600))
	c.DaemonArgs = []string{"--no-such-flag"}
	s, err := background.Connect(c, nil, slog.New(slog.DiscardHandler))
	ssetest.Must(t, err)
	_, err = s.Dial(t.Context())
	ssetest.WantText(t, "the error", fmt.Sprint(err), "sse-server ended at once: exit status 2: unknown flag --no-such-flag")
}

// A shared server that is killed at its start, before it listens, is started once more: a window has it, or the reason.
func TestSharedServerThatIsKilledAtItsStartIsStartedAgain(t *testing.T) {
	killed := filepath.Join(t.TempDir(), "killed")
	t.Setenv(childVariable, asProgram+":"+killed)
	env := clitest.State(t)
	t.Setenv("XDG_STATE_HOME", env["XDG_STATE_HOME"])
	var log output
	s, err := background.Connect(mustLoad(t, env, "stdio", "--connect", "http://127.0.0.1:8080/mcp", "--no-start-check", "--warm", "0", "--", "sh"),
		nil, slog.New(slog.NewTextHandler(&log, nil)))
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(killed, nil, 0o600))
	for range 2 { // the second one finds what the first one has started
		conn, err := s.Dial(t.Context()) // fails if it is not the one that is wanted
		ssetest.Must(t, err)
		ssetest.Must(t, conn.Close())
	}
	started := regexp.MustCompile(` pid=(\d+) `).FindAllStringSubmatch(log.String(), -1)
	if len(started) != 2 {
		t.Fatalf("got %d starts, want the one that was killed and another:\n%s", len(started), log.String())
	}
	pid, err := strconv.Atoi(started[1][1])
	ssetest.Must(t, err)
	ssetest.Must(t, syscall.Kill(-pid, syscall.SIGKILL))
	for syscall.Kill(pid, 0) == nil { // Dial waits for its end
		runtime.Gosched()
	}
}

// The lock of a learner has one file, which stays: one that was removed while somebody had it open is held by two.
func TestLearnersLockStays(t *testing.T) {
	dir := clitest.State(t)["XDG_STATE_HOME"]
	ssetest.Must(t, os.MkdirAll(filepath.Join(dir, "sse-server"), 0o700))
	t.Chdir(t.TempDir()) // where a relative path would be
	for _, env := range []map[string]string{{"XDG_STATE_HOME": dir}, {"XDG_STATE_HOME": dir}, nil} {
		m := &Main{
			Args: []string{"stdio", "--learn", "--", "true"}, Stdin: strings.NewReader("{}\n"), Stdout: io.Discard, Stderr: io.Discard,
			LookupEnv: clitest.Environment(env), Notify: func(...os.Signal) <-chan os.Signal { return nil },
		}
		m.Run()
	}
	locks, err := filepath.Glob(filepath.Join(dir, "sse-server", "learn-*.lock"))
	ssetest.Must(t, err)
	here, err := filepath.Glob("*")
	ssetest.Must(t, err)
	if len(locks) != 1 || len(here) > 0 {
		t.Errorf("got the locks %q, and here %q", locks, here)
	}
}

// Nothing of a clone's file starts because an entry of it is printed or written, or because init reads it.
func TestAnEntryOfACloneStartsNothing(t *testing.T) {
	clone, home := t.TempDir(), t.TempDir()
	t.Chdir(clone)
	started := filepath.Join(t.TempDir(), "started")
	file := clitest.Must(json.Marshal(map[string]any{"mcpServers": map[string]any{"evil": map[string]any{"command": "touch", "args": []string{started}}}}))
	ssetest.Must(t, os.Mkdir(".cursor", 0o700))
	for _, name := range []string{".mcp.json", ".cursor/mcp.json"} {
		ssetest.Must(t, os.WriteFile(name, file, 0o600))
	}
	env := map[string]string{"HOME": home, "XDG_STATE_HOME": t.TempDir(), "PATH": os.Getenv("PATH")}
	for _, args := range [][]string{
		{"init"}, {"connect", "cursor", "-c", "servers.yaml"}, {"connect", "cursor", "-c", ".mcp.json"}, {"connect", "claude-code", "evil", "-c", ".mcp.json"},
		{"connect", "cursor", "--write", "--replace", "-c", ".mcp.json"}, {"connect", "cursor", "--", "touch", started}, {"check", "--offline", "-c", "servers.yaml"},
	} {
		p := launchWith(t, env, args...)
		p.wantExit(exit.OK)
		if _, err := os.Stat(started); err == nil || strings.Contains(p.log.String(), "server started") {
			t.Fatalf("%q started the server:\n%s", args, p.log.String())
		}
	}
	launchWith(t, env, "check", "--start", "-c", "servers.yaml").wantExit(exit.Failure) // it would be seen
	if _, err := os.Stat(started); err != nil {
		t.Error(err)
	}
}
