//go:build linux

package stdio_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// fifo makes a named pipe and returns it as a variable for a child.
func fifo(t testing.TB) (path, env string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "fifo")
	ssetest.Must(t, syscall.Mkfifo(path, 0o600))
	return path, fifoEnv + "=" + path
}

// watch returns a channel that is closed when no process holds the named pipe any more.
func watch(t testing.TB, path string) (gone <-chan struct{}) {
	g := make(chan struct{})
	go func() {
		defer close(g)
		f, err := os.Open(path) // waits for a writer
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		_, _ = io.Copy(io.Discard, f)
	}()
	return g
}

func await(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s is still alive", what)
	}
}

func TestCommandCloseSteps(t *testing.T) {
	for _, behaviour := range []string{"ignore-eof", "ignore-term"} {
		t.Run(behaviour, func(t *testing.T) {
			c := command(t, behaviour)
			c.CloseTimeout = 100 * time.Millisecond
			counts := metrics.NewRegistry()
			c.Metrics = metrics.New(counts)
			conn := upstreamtest.Dial(t, c)
			upstreamtest.Recv(t, conn)
			blocked := make(chan error, 1)
			go func() { blocked <- upstreamtest.RecvError(conn) }()
			var closers sync.WaitGroup
			for range 3 {
				closers.Go(func() { ssetest.Want(t, "Close", conn.Close(), nil) })
			}
			closers.Wait()
			ssetest.WantError(t, "Recv", <-blocked, jsonrpc.ErrClosed)
			ssetest.Want(t, "starts", ssetest.Sum(t, counts, "mcp_sse_child_starts_total", "ok"), 1)
			ssetest.Want(t, "exits", ssetest.Sum(t, counts, "mcp_sse_child_exits_total", "closed"), 1)
		})
	}
}

// A child that flushes its output at the end must not be taken for one that
// hangs.
func TestCommandCloseReadsWhatTheChildStillWrites(t *testing.T) {
	var logs ssetest.Output
	c := command(t, "talk-at-eof")
	c.Logger = ssetest.Logger(&logs)
	ssetest.Want(t, "Close", upstreamtest.Dial(t, c.Observed(slog.Default(), nil)).Close(), nil)
	ssetest.WantText(t, "log", logs.String(), `status="exit status 0"`)
}

func TestCommandCloseDeliversWhatIsQueued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	conn := upstreamtest.Dial(t, stdio.Command{Path: "tee", Args: []string{path}})
	var want strings.Builder
	for i := range 1000 { // the first is more than the pipe has room for
		msg := fmt.Sprintf(`{"jsonrpc":%d,"pad":"%*d"}`, i, 1<<20/(i*i+1), 0)
		upstreamtest.Send(t, conn, msg)
		want.WriteString(msg + "\n")
	}
	ssetest.Want(t, "Close", conn.Close(), nil)
	if got, err := os.ReadFile(path); err != nil || string(got) != want.String() {
		t.Errorf("the child read %d bytes, %v, want %d", len(got), err, want.Len())
	}
}

func TestCommandKillsGrandchildren(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(stdio.Command, jsonrpc.Conn) error
		want string // why the session ends
	}{
		"after an exit": {func(_ stdio.Command, c jsonrpc.Conn) error { return c.Send([]byte(upstreamtest.Ping)) }, "exit status 0"},
		"at Close":      {func(_ stdio.Command, c jsonrpc.Conn) error { return c.Close() }, jsonrpc.ErrClosed.Error()},
		"at Abort":      {func(c stdio.Command, _ jsonrpc.Conn) error { c.Abort(); return nil }, "killed by signal"},
	} {
		t.Run(name, func(t *testing.T) {
			path, env := fifo(t)
			gone := watch(t, path)
			c := command(t, "grandchild", env)
			c.Abort() // of what nobody knows: nothing
			up := c.Observed(nil, nil).(stdio.Command)
			conn := upstreamtest.Dial(t, up)
			upstreamtest.Recv(t, conn) // from the grandchild
			if runtime.GOOS == "linux" {
				stdio.ForgetMemory()
				if held, nobody := up.Memory(), c.Memory(); held <= 0 || nobody != 0 {
					t.Errorf("the processes hold %d bytes, and those of nobody %d", held, nobody)
				}
			}
			ssetest.Want(t, "the end", tt.end(up, conn), nil)
			ssetest.WantText(t, "Recv", upstreamtest.RecvError(conn), tt.want)
			await(t, gone, "the grandchild")
		})
	}
}

// A process that left the group cannot be killed, but it must not keep us.
func TestCommandDaemonDoesNotHoldTheSession(t *testing.T) {
	for _, name := range []string{"Recv", "Close"} {
		t.Run(name, func(t *testing.T) {
			path, env := fifo(t)
			hold, err := os.OpenFile(path, os.O_RDWR, 0)
			ssetest.Must(t, err)
			defer hold.Close() // lets the daemon go
			others := goleak.IgnoreCurrent()
			conn := upstreamtest.Dial(t, command(t, "daemon", env))
			if name == "Recv" {
				if got, err := recvAll(t, conn); !errors.Is(err, io.EOF) || len(got) != 1 {
					t.Errorf("got %q, %v, want a message and io.EOF", got, err)
				}
			}
			ssetest.Want(t, "Close", conn.Close(), nil)
			goleak.VerifyNone(t, others) // while the daemon holds stdout and stderr
		})
	}
}

func TestCommandFloodOfStderrHarmsNobody(t *testing.T) {
	var logs ssetest.Output
	c := command(t, "flood")
	c.Logger = ssetest.Logger(&logs)
	conn := upstreamtest.Dial(t, c)
	upstreamtest.Send(t, conn, upstreamtest.Ping)
	ssetest.Want(t, "message", upstreamtest.Recv(t, conn), upstreamtest.Ping)
	ssetest.Want(t, "Close", conn.Close(), nil)
	lines := strings.Count(logs.String(), `msg="server stderr"`)
	if lines < 100 || lines > 2000 {
		t.Errorf("%d lines logged of 10,002", lines)
	}
	dropped := 0
	for _, m := range regexp.MustCompile(`server stderr"?.* suppressed=(\d+)`).FindAllStringSubmatch(logs.String(), -1) {
		n, _ := strconv.Atoi(m[1])
		dropped += n
	}
	ssetest.Want(t, "lines that were dropped or logged", dropped+lines, 10_002)
}

// onDyingThread runs f on a thread that ends afterwards: a goroutine that ends
// with its thread locked takes it along, unless it is the main thread.
func onDyingThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if syscall.Gettid() == syscall.Getpid() {
			onDyingThread(f)
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}

// The kernel ties PR_SET_PDEATHSIG to the thread that forked: when Dial's own
// thread ends, the child must live on. A witness that was forked by that thread
// itself tells when it has ended.
func TestCommandSurvivesTheThreadThatDialled(t *testing.T) {
	c := command(t, "echo")
	witness := exec.Command(c.Path)
	witness.Env = append(os.Environ(), behaviourEnv+"=never-read")
	witness.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var conn jsonrpc.Conn
	var dialErr, witnessErr error
	onDyingThread(func() {
		conn, dialErr = c.Dial(t.Context())
		witnessErr = witness.Start()
	})
	ssetest.Must(t, errors.Join(dialErr, witnessErr))
	defer conn.Close()
	if err := witness.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("witness: got %v, want it killed", err)
	}
	upstreamtest.Send(t, conn, upstreamtest.Ping)
	ssetest.Want(t, "message", upstreamtest.Recv(t, conn), upstreamtest.Ping)
}

func TestCommandDialIsCancelled(t *testing.T) {
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		conn, err := command(t, "echo").Dial(ctx)
		if err == nil {
			_ = conn.Close()
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	}
}

func TestCommandLeavesNothing(t *testing.T) {
	cycles := func() (open int) {
		for _, behaviour := range []string{"echo", "exit-7", "ignore-term", "never-read"} {
			c := command(t, behaviour)
			c.CloseTimeout = 20 * time.Millisecond
			conn := upstreamtest.Dial(t, c)
			if behaviour == "exit-7" {
				_, _ = conn.Recv()
			}
			ssetest.Want(t, "Close", conn.Close(), nil)
		}
		if _, err := (stdio.Command{Path: "/no/such"}).Dial(t.Context()); err == nil {
			t.Error("started what is not there")
		}
		entries, err := os.ReadDir("/proc/self/fd")
		ssetest.Must(t, err)
		return len(entries)
	}
	before := cycles()
	for range 4 {
		if after := cycles(); after > before {
			t.Errorf("%d descriptors open, %d before", after, before)
		}
	}
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("a child is left: pid %d, %v", pid, err)
	}
}
