package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/upstream"
)

var errTest = errors.New("the test ended it")

// server is an upstream whose sessions answer with one MCP version.
type server struct {
	upstream.Upstream
	starts atomic.Int64
	fail   error // of each start
}

func newServer(version string) *server {
	return &server{Upstream: upstream.Handle(func(_ context.Context, msg json.RawMessage) any {
		m, err := jsonrpc.Parse(msg)
		if err != nil || m.Kind != jsonrpc.Request {
			return nil
		}
		return json.RawMessage(jsonrpc.NewResult(m.ID, json.RawMessage(`{"protocolVersion":"`+version+`","capabilities":{}}`)))
	})}
}

func (s *server) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	s.starts.Add(1)
	if s.fail != nil {
		return nil, s.fail
	}
	return s.Upstream.Dial(ctx)
}

// within runs a test in fake time with a supplier, and ends the supplier.
func within(t *testing.T, up upstream.Upstream, change func(*sessions.Options), test func(t *testing.T, s *sessions.Supplier)) {
	synctest.Test(t, func(t *testing.T) {
		m, err := metrics.Named(metrics.NewRegistry(), "")
		if err != nil {
			t.Fatal(err)
		}
		opts := sessions.Options{
			Params:       handshake.Synthetic(handshake.ClientInfo{Name: "test", Version: "1"}),
			StartTimeout: time.Minute, InitializationTimeout: 5 * time.Second,
			Session: multiplex.Options{Logger: slog.New(slog.DiscardHandler), Metrics: m},
		}
		if change != nil {
			change(&opts)
		}
		s := sessions.New(up, opts)
		test(t, s)
		s.Close()
		s.Wait()
	})
}

// given returns params that are there.
func given(params json.RawMessage) <-chan json.RawMessage {
	c := make(chan json.RawMessage, 1)
	c <- params
	return c
}

// open returns an initialized session.
func open(t *testing.T, s *sessions.Supplier) *sessions.Session {
	t.Helper()
	session, _, err := s.Open(t.Context(), sessions.Client{AnyServer: true, Params: given(json.RawMessage("{}"))})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func share(o *sessions.Options) { o.Shared = true }

func TestSharedSessionThatTakesNoMoreIsReplaced(t *testing.T) {
	u := newServer("2025-11-25")
	within(t, u, share, func(t *testing.T, s *sessions.Supplier) {
		first := open(t, s)
		if other := open(t, s); other != first {
			t.Error("two clients got two sessions")
		}
		first.Retire(errTest, nil)
		<-first.Over()
		if first.Why() != errTest {
			t.Errorf("it is over for %v, want %v", first.Why(), errTest)
		}
		if again := open(t, s); again == first || u.starts.Load() != 2 {
			t.Errorf("%d starts, want a second one", u.starts.Load())
		}
	})
}

func TestFailedStartGivesItsTurnBack(t *testing.T) {
	u := newServer("2025-11-25")
	u.fail = errTest
	within(t, u, nil, func(t *testing.T, s *sessions.Supplier) {
		for range 50 {
			_, _, err := s.Open(t.Context(), sessions.Client{})
			if _, ok := errors.AsType[*handshake.Failure](err); !ok || !errors.Is(err, errTest) {
				t.Errorf("got %v, want a failure by %v", err, errTest)
			}
		}
	})
}

func TestServerComesFromThePool(t *testing.T) {
	u := newServer("2025-11-25")
	within(t, u, func(o *sessions.Options) { o.Warm = 1 }, func(t *testing.T, s *sessions.Supplier) {
		s.Start()
		synctest.Wait()
		session, from, err := s.Open(t.Context(), sessions.Client{AnyServer: true, Params: given(nil)}) // the client initializes it
		if err != nil || from != sessions.FromPool {
			t.Fatalf("got a session from %q, %v", from, err)
		}
		synctest.Wait()
		session.Close(errTest)
		if got := u.starts.Load(); got != 2 {
			t.Errorf("%d starts, want one for the pool and one for what was taken", got)
		}
	})
}

func TestReadinessProbesAreShared(t *testing.T) {
	u := newServer("2025-11-25")
	u.fail = errTest
	within(t, u, nil, func(t *testing.T, s *sessions.Supplier) {
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := s.Ready(t.Context()); !errors.Is(err, errTest) {
					t.Errorf("got %v, want %v", err, errTest)
				}
			})
		}
		wg.Wait()
		if n := u.starts.Load(); n != 1 {
			t.Errorf("%d starts for 10 callers, want 1", n)
		}
		s.Drain()
		if err := s.Ready(t.Context()); err == nil || errors.Is(err, errTest) {
			t.Errorf("while it drains: got %v", err)
		}
	})
}

func TestUnknownVersionIsWarnedOfOnce(t *testing.T) {
	var log strings.Builder
	withLog := func(o *sessions.Options) {
		o.Session.Logger = slog.New(slog.NewTextHandler(&log, nil))
	}
	within(t, newServer("2031-01-01"), withLog, func(t *testing.T, s *sessions.Supplier) {
		for range 3 {
			open(t, s).Close(errTest)
		}
	})
	if n := strings.Count(log.String(), "unknown protocol version"); n != 1 {
		t.Errorf("%d warnings, want 1: %s", n, log.String())
	}
}

// abortable is a server whose processes can be killed.
type abortable struct {
	*server
	aborted *atomic.Int64
}

func (a abortable) Abort() { a.aborted.Add(1) }

// Abort reaches the servers before that still have sessions, and no others.
func TestAbortAfterSuccessors(t *testing.T) {
	var first, second, third atomic.Int64
	up := func(n *atomic.Int64) abortable { return abortable{newServer("2025-11-25"), n} }
	within(t, up(&first), nil, func(t *testing.T, s *sessions.Supplier) {
		session := open(t, s)
		opts := sessions.Options{StartTimeout: time.Minute, Session: multiplex.Options{Logger: slog.New(slog.DiscardHandler)}}
		next := s.Successor(up(&second), opts)
		s.Retire()
		last := next.Successor(up(&third), opts)
		next.Retire()
		last = last.Successor(up(&third), opts)
		last.Abort()
		if got := []int64{first.Load(), second.Load(), third.Load()}; !slices.Equal(got, []int64{1, 0, 2}) {
			t.Errorf("aborted %v, want the first, and the last two", got)
		}
		select {
		case <-session.Replaced():
		default:
			t.Error("the user of the session is not told")
		}
		session.Close(errTest)
	})
}
