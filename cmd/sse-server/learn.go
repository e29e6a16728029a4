package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/closed"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/private"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// An agent that gives up before its server has booted ends sse-server stdio, and the server with it, often
// by SIGKILL: so the next start would be as cold. While a client waits for the answer to its initialize, and
// until that and the lists are remembered, a second process stands by, in a session of its own. If the first one
// ends before, it has the server say what it has, and remembers it.
//
// Another one begins when the client has left, if it is not known what the server says in an empty folder. It waits for
// a while, in which a client may come again, and learns that if none uses the server then: some servers end the
// process that ran before, or need a port or a file that it has.
//
//	agent ── initialize ──▶ sse-server stdio ──▶ server, which boots
//	                              │ params, and the end of the pipe
//	                              ▼
//	                        sse-server stdio --learn ── if that comes too early ──▶ server boots once more
//	agent ── initialize ──▶ sse-server stdio answers from memory

const (
	// maxIntroduction bounds what is read of a client to find its initialize, in bytes. It fits into a pipe
	// that nobody reads yet, on every system.
	maxIntroduction = 15 << 10
	// learnerAfter is how long a client waits before a process stands by: memory answers sooner, and so do
	// servers that boot fast.
	learnerAfter = 100 * time.Millisecond
	// lastLook bounds how long the session of a client that has left in order is waited for: clients that see no end
	// of the program send it a signal after 2 s.
	lastLook = 1500 * time.Millisecond
	// learnerStays bounds how long it stands by once the client has that answer: what some servers say is not
	// remembered.
	learnerStays = 10 * time.Second
)

// introduction watches a client of stdio until it is initialized: it is the reader and the writer of both
// streams. Make it with newIntroduction. It is safe for concurrent use.
type introduction struct {
	in       io.Reader
	out      io.Writer
	asked    chan json.RawMessage // gets the params of the client's initialize
	answered chan struct{}        // closed when the client has the result, before it leaves

	mu   sync.Mutex // guards what follows
	line []byte     // the beginning of the client's next line
	read int        // bytes of the client so far
	// waits says that the client has asked, and over that it has its result, or will not ask.
	waits, over bool
	left        bool            // it has ended its input: an answer that comes later may find nobody
	params      json.RawMessage // of its initialize
}

func newIntroduction(in io.Reader, out io.Writer) *introduction {
	return &introduction{in: in, out: out, asked: make(chan json.RawMessage, 1), answered: make(chan struct{})}
}

// Read reads from the client.
func (i *introduction) Read(p []byte) (int, error) {
	n, err := i.in.Read(p)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		i.left = true
	}
	if !i.waits && !i.over {
		i.read += n
		i.line = append(i.line, p[:n]...)
		i.findInitialize()
	}
	return n, err
}

func (i *introduction) findInitialize() {
	for !i.waits {
		line, rest, whole := bytes.Cut(i.line, []byte("\n"))
		if !whole {
			break
		}
		if m, err := jsonrpc.Parse(line); err == nil && m.Method == mcp.MethodInitialize && len(m.Params()) <= maxIntroduction {
			i.waits, rest = true, nil
			i.params = bytes.Clone(m.Params())
			i.asked <- i.params
		}
		i.line = rest
	}
	if !i.waits && i.read > maxIntroduction {
		i.over, i.line = true, nil
	}
}

// isAnswered reports whether answered is closed.
func (i *introduction) isAnswered() bool { return closed.Is(i.answered) }

// Write writes to the client.
func (i *introduction) Write(p []byte) (int, error) {
	i.mu.Lock()
	left := i.left // before: it may have its answer, and leave, before Write returns
	i.mu.Unlock()
	n, err := i.out.Write(p)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.waits && !i.over && !left && err == nil && bytes.Contains(p, []byte(`"protocolVersion"`)) {
		i.over = true
		close(i.answered)
	}
	return n, err
}

// errInOrder is why a client is served no more that has ended its input, and has its answers.
var errInOrder = errors.New("the client has left in order")

// standBy lets a process stand by while the client waits for the answer to its initialize, and until what
// the server says is remembered. It returns when the process is not needed any more, or when ctx ends: that
// leaves the process to the end of this one, unless the client has that answer and has left in order.
func (m *Main) standBy(ctx context.Context, client *introduction, gw *gateway.Gateway, dir string, log *slog.Logger) {
	var params json.RawMessage
	select {
	case params = <-client.asked:
	case <-ctx.Done():
		return
	}
	select {
	case <-client.answered:
		return
	case <-time.After(learnerAfter):
	case <-ctx.Done():
	}
	learner, err := m.startLearner(params, dir)
	if err != nil {
		log.Warn("what the server says could not be learned", "err", err)
		return
	}
	if awaitLearned(ctx, client, gw, params) {
		_, _ = learner.Write([]byte("\n")) // it ends; if not, it learns what is known
		_ = learner.Close()
	}
}

// learnElsewhere starts a process that learns what the server says in an empty folder, if the client that has left
// has let it be known what it says here.
func (m *Main) learnElsewhere(client *introduction, gw *gateway.Gateway, dir string, log *slog.Logger) {
	client.mu.Lock()
	params := client.params
	client.mu.Unlock()
	if params == nil || dir == "" || !gw.RemembersFor(params) || !gw.WantsAnyFolder() {
		return
	}
	learner, err := m.startLearner(params, dir)
	if err != nil {
		log.Warn("what the server says could not be learned", "err", err)
		return
	}
	_ = learner.Close()
}

// awaitLearned waits until no process has to stand by. It reports false if ctx ended before, whose end may be
// that of this process. Once the client has left in order, its session still says what it has.
func awaitLearned(ctx context.Context, client *introduction, gw *gateway.Gateway, params json.RawMessage) bool {
	select {
	case <-client.answered:
	case <-ctx.Done():
	}
	var last <-chan time.Time
	left, enough := ctx.Done(), time.After(learnerStays)
	tick := time.NewTicker(learnerAfter / 10)
	defer tick.Stop()
	for !gw.RemembersFor(params) {
		select {
		case <-tick.C:
		case <-enough:
			return true
		case <-left:
			if !errors.Is(context.Cause(ctx), errInOrder) {
				return false
			}
			left, last = nil, time.After(lastLook)
		case <-last:
			return client.isAnswered()
		}
	}
	return true
}

// startLearner starts a process that learns what the server says to clients with these params of
// initialize once the returned pipe is closed, unless something is written into it before. Its log is
// learn.log in a directory.
func (m *Main) startLearner(params json.RawMessage, dir string) (io.WriteCloser, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	at := slices.Index(m.Args, "--")
	if at < 0 {
		at = len(m.Args)
	}
	cmd := exec.Command(self, slices.Insert(slices.Clone(m.Args), at, "--learn")...)
	cmd.SysProcAttr = detached()
	file, err := private.OpenFile(filepath.Join(dir, "learn.log"), os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd.Stderr = file
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd.Stdin = r
	_, err = w.Write(append(params, '\n')) // before the start: this process may be killed right after it
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	go func() { _ = cmd.Wait() }() // ends with the learner, or with this process
	return w, nil
}

// learn waits for the end of stdin, and then has the server say what it says to a client with the params
// there, if that is not remembered, and then what may be told in any folder. It does nothing if more comes.
func (m *Main) learn(c *config.Config, s *config.Server, gw *gateway.Gateway, log *slog.Logger) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { // ends with ctx
		select {
		case <-m.signals:
			stop()
		case <-ctx.Done():
		}
	}()
	input := make(chan []byte, 1)
	go func() { // ends with stdin
		all, _ := io.ReadAll(m.Stdin) // what is missing shows below
		input <- all
	}()
	err := func() error {
		var params, more []byte
		select {
		case all := <-input:
			params, more, _ = bytes.Cut(all, []byte("\n"))
		case <-ctx.Done():
		}
		if len(params) == 0 || len(more) > 0 || c.StateDir == "" {
			return nil
		}
		one := flock.New(filepath.Join(c.StateDir, "learn-"+commandHash(c, s)+".lock"), flock.SetPermissions(0o600))
		if err := alone(one, func() error { return gw.Learn(ctx, params) }); err != nil || !gw.WantsAnyFolder() {
			return err
		}
		release, ok := gw.ReserveAnyFolder()
		if !ok {
			return nil
		}
		defer release()
		if backoff.Wait(ctx, time.Duration(c.Stdio.LearnAfter)) == nil {
			return alone(one, func() error { gw.LearnInAnyFolder(ctx); return nil })
		}
		return nil
	}()
	code := exitOK
	if err != nil {
		log.Warn("what the server says could not be learned", "err", err)
		code = exitFailure
	}
	return m.stop(log, time.Duration(c.ShutdownTimeout), func(ctx context.Context) { _ = gw.Shutdown(ctx) }, gw.Abort, nil, code)
}

// alone has a server started, whose timeouts bound that, unless another process does it: what else is to be learned of the
// server meanwhile is not.
func alone(one *flock.Flock, start func() error) error {
	if locked, err := one.TryLock(); !locked {
		return err
	}
	defer one.Close() // the file stays: whoever has opened it may hold it next
	return start()
}

// commandHash names the command of a server, whatever its folder and its variables, in the name of a file, of which there are
// 65,536: of two that share one, one may not be learned.
func commandHash(c *config.Config, s *config.Server) string {
	name := c.Title(s)
	if command, ok := s.Upstream().(upstream.Command); ok {
		name = command.Identity().Command
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:2])
}
