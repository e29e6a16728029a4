package docstest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// at is the place of a block.
func (b block) at() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// code is the text of a block.
func (b block) code() string { return strings.Join(b.text, "\n") + "\n" }

// isPattern says whether the reader is told to replace something in the block.
func (b block) isPattern() bool {
	return len(b.text) > 0 && strings.HasPrefix(strings.TrimSpace(b.text[0]), "# Pattern")
}

// fakes stand for the programs that shell blocks name: sse-server checks its
// configuration, make that it has the targets, go makes a module and does not fetch
// what it needs, and all others check at most their arguments.
var fakes = map[string]string{
	"sse-server": `case "$1" in help|version|check) exec "$SSE_SERVER" "$@";; login|logout) case "$2" in https://*) test $# -eq 2;; *) exit 1;; esac;; tools) shift; exec "$SSE_SERVER" check --offline "$@";; *) exec "$SSE_SERVER" check --offline "$@";; esac`,
	"go": `case "$*" in
		"run ./cmd/sse-server"*) shift 2; exec sse-server "$@";;
		"mod init "*|"mod edit "*) exec "$GO_PROGRAM" "$@" 2>go.log;;
		"mod tidy"|"run .") test -f go.mod;;
		*) echo "go $*: not expected" >&2; exit 1;;
		esac`,
	"make": `exec "$MAKE_PROGRAM" -n "$@"`,
	"npx":  `test $# -gt 0`,
	// The end-to-end tests of docsearch run what its README shows.
	"docsearch": `case "$1" in search|mcp|status|stop|daemon) exit 0;; *) exit 1;; esac`,
	"claude":    `test "$1 $2 $3 $4 $5" = "mcp add --scope user --transport" -a $# -ge 8`,
	"curl":      `test $# -gt 0`,
}

// workshop is a folder in which blocks run: it has what the root of a clone has,
// and a PATH of fakes.
type workshop struct {
	dir string
	env []string
}

func newWorkshop(t *testing.T, sseServer string) workshop {
	t.Helper()
	w := workshop{dir: t.TempDir()}
	// A command may change a file of the root. bin would hide the fakes.
	link := exec.Command("sh", "-c", `for f in *; do if test -d "$f"; then ln -s "$PWD/$f" "$0"; else cp "$f" "$0"; fi; done; rm -f "$0/bin"`, w.dir)
	link.Dir = root
	if out, err := link.CombinedOutput(); err != nil {
		t.Fatalf("copy the root: %v\n%s", err, out)
	}
	path := t.TempDir()
	for name, script := range fakes {
		ssetest.Must(t, os.WriteFile(filepath.Join(path, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	w.env = []string{"GORACE=atexit_sleep_ms=0", "PATH=" + path + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "SSE_SERVER=" + sseServer}
	for _, name := range []string{"make", "go"} {
		program, err := exec.LookPath(name)
		ssetest.Must(t, err)
		w.env = append(w.env, strings.ToUpper(name)+"_PROGRAM="+program)
	}
	return w
}

// fill puts in place what the patterns of the pages tell a reader to have: a
// server, a file of tokens, one of servers, and tokens in the environment.
func (w *workshop) fill(t *testing.T) {
	t.Helper()
	for name, content := range map[string]string{
		"my-server": "#!/bin/sh\n", "tokens": "alice:0123456789abcdef\n",
		"servers.yaml": "servers: {a: {}}\n", "id-key": strings.Repeat("k", 44), "config.yaml": "auth-tokens-file: tokens\n",
	} {
		ssetest.Must(t, os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o700))
	}
	w.env = append(w.env, "TOKEN=x", "SEARCH_TOKEN=x")
}

// build builds a program of the module, or a file, into a folder of the test's own, with
// the race detector, as all tests are: nothing is compiled twice.
func build(t *testing.T, what string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-race", "-ldflags=-s -w", "-o", program, what)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", what, err, out)
	}
	return program
}

// README has two commands: one that serves, and one that passes the tests, which is what CI runs.
func TestREADMEHasTheCommandOfCI(t *testing.T) {
	var commands []string
	for _, p := range pages(t) {
		if p.path != "README.md" {
			continue
		}
		for _, b := range p.blocks {
			if shells[b.language] && !b.isPattern() && len(b.text) == 1 {
				command, _, _ := strings.Cut(b.text[0], "#")
				commands = append(commands, strings.TrimSpace(command))
			}
		}
	}
	if want := []string{"go run ./cmd/sse-server", "make test"}; !slices.Equal(commands, want) {
		t.Fatalf("README has the commands %q, want %q", commands, want)
	}
	script, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^` + commands[1] + `( |$)`).Match(script) {
		t.Errorf(".ci/run does not run %q", commands[1])
	}
}

// fileName is the first line of a block of YAML that says which file it is.
var fileName = regexp.MustCompile(`^# ([\w./-]+\.yaml)$`)

// TestBlocksAreRight runs each shell block of each page, after the files that the page
// shows before it have been written. Of blocks that are patterns it runs the lines with
// sse-server, with the names that they have in place. JSON has to be JSON.
func TestBlocksAreRight(t *testing.T) {
	sseServer := build(t, "./cmd/sse-server")
	ran := map[string]int{}
	for _, p := range pages(t) {
		w, filled := newWorkshop(t, sseServer), newWorkshop(t, sseServer)
		filled.fill(t)
		for _, b := range p.blocks {
			switch {
			case b.isPattern() && shells[b.language]:
				for _, line := range b.text {
					if strings.HasPrefix(line, "sse-server ") {
						ran["patterns"]++
						filled.run(t, b, strings.ReplaceAll(line, "/etc/sse-server/", ""))
					}
				}
			case b.language == "yaml" && !b.isPattern():
				name := fileName.FindStringSubmatch(b.text[0])
				if name == nil {
					t.Errorf("%s: want the first line to be # Pattern, or the name of the file as in # servers.yaml", b.at())
					continue
				}
				if err := os.WriteFile(filepath.Join(w.dir, name[1]), []byte(b.code()), 0o600); err != nil {
					t.Errorf("%s: %v", b.at(), err)
				}
				w.run(t, b, "sse-server --config "+name[1])
			case b.language == "json":
				if !json.Valid([]byte(b.code())) {
					t.Errorf("%s: the block is no JSON", b.at())
				}
			case shells[b.language]:
				ran[p.path]++
				w.run(t, b, b.code())
			}
		}
	}
	for _, path := range []string{"README.md", "docs/getting-started.md", "patterns"} {
		if ran[path] == 0 {
			t.Errorf("%s: no shell block ran", path)
		}
	}
}

// run runs a script, which has to end well and to write nothing to stderr.
func (w workshop) run(t *testing.T, b block, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = w.dir, w.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Errorf("%s: does not run as printed: %v\n%s", b.at(), err, stderr.String())
	}
}
