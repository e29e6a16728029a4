package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

// world is a state directory and a folder of documents.
type world struct {
	testing.TB
	program string // "" for docsearch with the race detector
	state   string
	docs    string
	env     []string
	log     output // of all processes
}

// documents is how many documents the folder of a world has.
const documents = 24

// word is one that only document n has.
func word(n int) string {
	return "zebra" + strings.Repeat("x", n%5) + string(rune('a'+n)) + "k" // no ending that English words have
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, state: filepath.Join(t.TempDir(), "state"), docs: filepath.Join(t.TempDir(), "docs")}
	if err := os.Mkdir(w.docs, 0o755); err != nil {
		t.Fatal(err)
	}
	for n := range documents {
		w.write(fmt.Sprintf("doc-%d.md", n), fmt.Sprintf("# Document %d\n\nThe herd grazes, and %s drinks at the river.\n", n, word(n)))
	}
	t.Cleanup(w.end)
	return w
}

// end ends the daemon, which must be the only one.
func (w *world) end() {
	if all := w.daemons(); len(all) > 1 {
		w.Errorf("%d daemons run for one state directory: %v", len(all), all)
	}
	for _, pid := range w.daemons() {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	w.stop()
	daemon, _ := os.ReadFile(filepath.Join(w.state, "daemon.log")) // not all have one
	log := fmt.Sprintf("log:\n%s\ndaemon.log:\n%s", w.log.String(), daemon)
	if strings.Contains(log, "DATA RACE") {
		w.Error("the race detector found something")
	}
	if w.Failed() {
		w.Log(log)
	}
}

// stop ends the daemon. docsearch stop waits for its end.
func (w *world) stop() {
	w.Helper()
	if out, err := w.command("stop").CombinedOutput(); err != nil {
		w.Errorf("docsearch stop: %v: %s", err, out)
	}
	if all := w.daemons(); len(all) > 0 {
		w.Errorf("after docsearch stop daemons run: %v", all)
	}
}

func (w *world) write(name, text string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.docs, name), []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
}

// command is docsearch with the state directory of the world.
func (w *world) command(args ...string) *exec.Cmd {
	w.Helper()
	program := w.program
	if program == "" {
		program = binary(w.TB, "docsearch")
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(append(os.Environ(), "DOCSEARCH_STATE_DIR="+w.state, "GORACE=atexit_sleep_ms=0"), w.env...)
	return cmd
}

// serve is the command line of an MCP server for the folder.
func (w *world) serve(more ...string) []string {
	return append([]string{"mcp", "--folder", w.docs, "--addr", "127.0.0.1:0"}, more...)
}

// agent starts an MCP server and connects to it over stdio.
func (w *world) agent(more ...string) *mcp.ClientSession {
	w.Helper()
	cmd := w.command(w.serve(more...)...)
	cmd.Stderr = &w.log
	return w.connect(&mcp.CommandTransport{Command: cmd})
}

// connect connects a client that the test closes at its end.
func (w *world) connect(transport mcp.Transport) *mcp.ClientSession {
	w.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(w.Context(), transport, nil)
	if err != nil {
		w.Fatalf("connect: %v", err)
	}
	w.Cleanup(func() { _ = session.Close() }) // tests may have ended its process
	return session
}

// answer is what the search tools answer.
type answer struct {
	Results []struct {
		DocumentID string  `json:"documentId"`
		Path       string  `json:"path"`
		Relevance  float64 `json:"relevance"`
	} `json:"results"`
	Warnings []string `json:"warnings"`
}

// call calls a tool and decodes what it answers.
func call(ctx context.Context, s *mcp.ClientSession, tool string, args map[string]any, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return err
	}
	if result.IsError {
		return fmt.Errorf("%s: %s", tool, result.Content[0].(*mcp.TextContent).Text)
	}
	data, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// find searches for the word of document n, which must come first.
func find(ctx context.Context, s *mcp.ClientSession, n int) error {
	var got answer
	if err := call(ctx, s, "search", map[string]any{"query": word(n)}, &got); err != nil {
		return fmt.Errorf("document %d: %w", n, err)
	}
	want := fmt.Sprintf("doc-%d.md", n)
	if len(got.Results) != 1 || filepath.Base(got.Results[0].Path) != want {
		return fmt.Errorf("document %d: found %v, want %s (warnings: %v)", n, got.Results, want, got.Warnings)
	}
	return nil
}

// ready waits until the folder is indexed.
func (w *world) ready(s *mcp.ClientSession) {
	w.Helper()
	w.eventually("all documents are indexed", func() bool {
		for n := range documents {
			if find(w.Context(), s, n) != nil {
				return false
			}
		}
		return true
	})
}

// findAll searches for all documents at once, several at a time.
func (w *world) findAll(s *mcp.ClientSession) {
	w.Helper()
	var wg sync.WaitGroup
	for n := range documents {
		wg.Go(func() {
			if err := find(w.Context(), s, n); err != nil {
				w.Error(err)
			}
		})
	}
	wg.Wait()
}

// daemon returns the pid in the record of the daemon, which must be alive.
func (w *world) daemon() (pid int) {
	w.Helper()
	w.eventually("a daemon has told where it is", func() bool {
		record, err := discovery.Read(w.state)
		pid = record.PID
		return err == nil && syscall.Kill(pid, 0) == nil
	})
	return pid
}

// daemons returns the pids of all daemons of the state directory.
func (w *world) daemons() []int {
	var all []int
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(entries) == 0 {
		w.Fatalf("these tests need /proc: %v", err)
	}
	for _, file := range entries {
		line, err := os.ReadFile(file)
		if err != nil { // it has ended
			continue
		}
		args := strings.Split(string(line), "\x00")
		if len(args) > 1 && args[1] == "daemon" && strings.Contains(string(line), "\x00"+w.state+"\x00") {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			all = append(all, pid)
		}
	}
	return all
}

// eventually waits for a condition that comes from outside.
func (w *world) eventually(what string, condition func() bool) {
	w.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			w.Fatalf("after %v not true: %s\n%s", patience, what, w.log.String())
		}
	}
}

// output is a buffer that processes write to.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// agentOf is agent with another path of the program.
func (w *world) agentOf(program string) *mcp.ClientSession {
	w.Helper()
	cmd := w.command(w.serve()...)
	cmd.Path, cmd.Args[0] = program, program
	cmd.Stderr = &w.log
	return w.connect(&mcp.CommandTransport{Command: cmd})
}

// agentIn is agent with another state directory.
func (w *world) agentIn(state string) *mcp.ClientSession {
	w.Helper()
	cmd := w.command(append(w.serve(), "--state-dir", state)...)
	cmd.Stderr = &w.log
	return w.connect(&mcp.CommandTransport{Command: cmd})
}
