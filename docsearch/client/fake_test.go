package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/client"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

// Modes of the fake daemon. A file "mode" in its directory overrides the one it is
// started with; the daemon removes that file, so that only one run has it.
const (
	modeGood    = "good"
	modeExits   = "exits"   // says why, and ends
	modeHidden  = "hidden"  // never publishes a record
	modeSlow    = "slow"    // publishes it when its test lets it go on
	modeMute    = "mute"    // publishes, and answers nothing
	modeVersion = "version" // speaks another version of the API
	modeWrong   = "wrong"   // is not the process of its record
	modeDies    = "dies"    // ends during each search
)

const (
	slowQuery  = "slow"  // is answered when the test lets it go on
	dieQuery   = "die"   // ends the daemon, once
	busyQuery  = "busy"  // fails twice with 500, then works
	badQuery   = "bad"   // 400
	brokeQuery = "broke" // always 500
	htmlQuery  = "html"  // an answer that is not of the API
	hugeQuery  = "huge"  // a response over the limit
)

// Gates are FIFOs in the state directory of a test. They are closed while the test holds
// them for writing, which ends with its process too.
const (
	endGate = "test-runs" // opens when the test is over
	goGate  = "go"
)

// fakeDaemon is a daemon without documents: a search returns its query and its PID.
type fakeDaemon struct {
	dir, mode string

	mu   sync.Mutex
	busy int
}

// runDaemon is the main function of a fake daemon.
func runDaemon(dir, mode string) {
	endWithTest(dir)
	note(dir, "starts", strconv.Itoa(os.Getpid()))
	if data, err := os.ReadFile(filepath.Join(dir, "mode")); err == nil {
		mode = string(data)
		_ = os.Remove(filepath.Join(dir, "mode"))
	}
	if mode == modeExits {
		fmt.Println("first line\x1b[2J\x07\r\u009b\u202eend")
		fmt.Println("cannot open the index: it is a test")
		os.Exit(3)
	}
	lock, err := discovery.Acquire(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	record := discovery.NewRecord(listener.Addr().String(), "fake")
	if mode == modeVersion {
		record.APIVersion = 99
	}
	if mode == modeSlow {
		waiter(dir, goGate)()
	}
	if mode != modeHidden {
		if err := lock.Publish(record); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	d := &fakeDaemon{dir: dir, mode: mode}
	_ = http.Serve(listener, d)
}

// endWithTest ends this process when its test is over.
func endWithTest(dir string) {
	wait := waiter(dir, endGate)
	go func() {
		wait()
		os.Exit(0)
	}()
}

// closeGate makes a gate, which is closed until the function that it returns is called,
// or the test is over.
func closeGate(t testing.TB, dir, name string) (open func()) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // O_WRONLY would wait for a reader
	if err != nil {
		t.Fatal(err)
	}
	open = sync.OnceFunc(func() { _ = f.Close() })
	t.Cleanup(open)
	return open
}

// waiter returns a function that waits until a gate is open. It ends this process if
// there is no such gate: the test is over.
func waiter(dir, name string) (wait func()) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|syscall.O_NONBLOCK, 0) // else it would wait for a writer
	if err != nil {
		os.Exit(1)
	}
	return func() {
		_, _ = f.Read(make([]byte, 1)) // EOF when the last writer has closed it
		_ = f.Close()
	}
}

func (d *fakeDaemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.mode == modeMute {
		select {}
	}
	note(d.dir, "requests", r.Method+" "+r.URL.EscapedPath())
	if token := r.Header.Get("Authorization"); token != "" && token != "Bearer right" {
		reply(w, http.StatusUnauthorized, api.ErrorBody{Error: api.Error{Code: api.CodeUnauthorized, Message: "wrong token"}})
		return
	}
	switch path := r.URL.Path; {
	case path == "/health":
		d.health(w)
	case path == "/api/v1/server/info":
		reply(w, 200, api.ServerInfo{PID: os.Getpid(), APIVersion: api.Version})
	case path == "/api/v1/folders":
		reply(w, 200, api.Folders{})
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(path, "/search"):
		d.search(w, r)
	case strings.HasPrefix(path, "/api/v1/documents/"):
		reply(w, 200, api.Document{Text: r.URL.RawQuery})
	default:
		reply(w, 200, api.SearchResponse{Warnings: []string{r.URL.EscapedPath()}})
	}
}

func (d *fakeDaemon) health(w http.ResponseWriter) {
	pid := os.Getpid()
	if d.mode == modeWrong {
		pid++
	}
	reply(w, 200, api.Health{Status: api.StatusHealthy, PID: pid, APIVersion: api.Version})
}

func (d *fakeDaemon) search(w http.ResponseWriter, r *http.Request) {
	var q api.SearchRequest
	_ = json.NewDecoder(r.Body).Decode(&q)
	failed := func(status int) {
		reply(w, status, api.ErrorBody{Error: api.Error{Code: api.CodeIndexFailed, Message: "test"}})
	}
	d.mu.Lock()
	d.busy++
	busy := d.busy
	d.mu.Unlock()
	if d.mode == modeDies {
		os.Exit(9)
	}
	switch q.Query {
	case dieQuery:
		if os.Mkdir(filepath.Join(d.dir, "died"), 0o700) == nil {
			os.Exit(9)
		}
	case busyQuery:
		if busy <= 2 {
			failed(500)
			return
		}
	case badQuery:
		failed(400)
		return
	case brokeQuery:
		failed(500)
		return
	case htmlQuery:
		_, _ = fmt.Fprint(w, "<html>hello</html>")
		return
	case hugeQuery:
		_, _ = w.Write(make([]byte, 33<<20))
		return
	case slowQuery:
		waiter(d.dir, goGate)()
	}
	reply(w, 200, api.SearchResponse{Results: []api.Result{{DocumentName: q.Query, DocumentID: strconv.Itoa(os.Getpid())}}})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// note appends a line to a file in dir.
func note(dir, name, line string) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString(line + "\n")
	_ = f.Close()
}

// notes returns the lines of a file that note wrote.
func notes(dir, name string) []string {
	data, _ := os.ReadFile(filepath.Join(dir, name))
	return strings.Fields(strings.ReplaceAll(string(data), " ", "_"))
}

// stateDir returns a state directory. At the end of the test, all daemons that were
// started for it are killed and gone.
func stateDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { // whatever the umask: it will not be empty
		t.Fatal(err)
	}
	end := closeGate(t, dir, endGate)
	t.Cleanup(func() {
		end()
		for _, line := range notes(dir, "starts") {
			pid, _ := strconv.Atoi(line)
			killDaemon(t, dir, pid)
		}
		eventually(t, "the lock is free", func() bool {
			held, err := discovery.Held(dir)
			return !held && err == nil
		})
	})
	return dir
}

// killDaemon kills a fake daemon of dir, if it still runs, and waits for its end: until
// then it may answer.
func killDaemon(t testing.TB, dir string, pid int) {
	t.Helper()
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if !strings.Contains(string(cmdline), daemonArg+"\x00"+dir) {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	eventually(t, "the killed daemon ends", func() bool { return threadsAre(pid, 'Z') })
}

// stopDaemon has a fake daemon hang.
func stopDaemon(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the daemon hangs", func() bool { return threadsAre(pid, 'T') })
}

// threadsAre reports whether all threads of a process have this state of proc(5).
func threadsAre(pid int, state byte) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err == nil && !strings.Contains(string(stat), ") "+string(state)+" ") {
			return false
		}
	}
	return true
}

func command(dir, mode string) []string { return []string{os.Args[0], daemonArg, dir, mode} }

// newClient returns a client of a daemon in dir. Options that are zero are made for
// tests.
func newClient(t testing.TB, dir, mode string, o client.Options) *client.Client {
	t.Helper()
	o.StateDir = dir
	if o.Command == nil {
		o.Command = command(dir, mode)
	}
	if o.HangTimeout == 0 {
		o.HangTimeout = time.Minute // a daemon on a busy machine does not hang
	}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask searches for a query and returns the PID of the daemon that answered.
func ask(ctx context.Context, c *client.Client, query string) (int, error) {
	found, err := c.Search(ctx, api.SearchRequest{Query: query})
	if err != nil {
		return 0, err
	}
	if len(found.Results) != 1 || found.Results[0].DocumentName != query {
		return 0, fmt.Errorf("got %+v, want the answer to %q", found.Results, query)
	}
	return strconv.Atoi(found.Results[0].DocumentID)
}

func mustAsk(t testing.TB, c *client.Client, query string) int {
	t.Helper()
	pid, err := ask(t.Context(), c, query)
	if err != nil {
		t.Fatalf("ask %q: %v", query, err)
	}
	return pid
}

func wantDown(t *testing.T, err error, words ...string) {
	t.Helper()
	down, ok := errors.AsType[*client.DownError](err)
	if !ok || down.Reason == "" || down.Advice == "" {
		t.Fatalf("got %v, want a DownError with reason and advice", err)
	}
	for _, w := range words {
		if !strings.Contains(down.Error(), w) {
			t.Errorf("got %q, want %q in it", down, w)
		}
	}
}

// wantStarts checks how many daemons were started in dir. The last one may still be
// about to run.
func wantStarts(t *testing.T, dir string, want int) {
	t.Helper()
	eventually(t, "the daemons start", func() bool { return len(notes(dir, "starts")) >= want })
	if got := notes(dir, "starts"); len(got) != want {
		t.Errorf("got %d starts of daemons, want %d: %q", len(got), want, got)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}
