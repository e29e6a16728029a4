package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
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
			Params:           handshake.Synthetic(handshake.ClientInfo{Name: "test", Version: "1"}, nil),
			StartConcurrency: 1, StartTimeout: time.Minute, InitializationTimeout: 5 * time.Second,
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

// join joins a shared session and counts its losses.
func join(t *testing.T, s *sessions.Supplier) (*sessions.Member, *atomic.Int64) {
	t.Helper()
	var losses atomic.Int64
	m, err := s.Join(t.Context(), func(error) { losses.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	return m, &losses
}

func share(n int) func(*sessions.Options) { return func(o *sessions.Options) { o.Shared = n } }

func TestLossOfASharedSessionIsToldEachMemberOnce(t *testing.T) {
	u := newServer("2025-11-25")
	within(t, u, share(1), func(t *testing.T, s *sessions.Supplier) {
		first, firstLosses := join(t, s)
		_, secondLosses := join(t, s)
		left, leftLosses := join(t, s)
		left.Leave()
		first.Replace()
		first.Session.End(errTest) // which the slot has let go
		first.Replace()
		synctest.Wait()
		if a, b, c := firstLosses.Load(), secondLosses.Load(), leftLosses.Load(); a != 1 || b != 1 || c != 0 {
			t.Errorf("the members were told %d, %d and, after it left, %d times, want 1, 1 and 0", a, b, c)
		}
		if again, _ := join(t, s); again.Session == first.Session || u.starts.Load() != 2 {
			t.Errorf("%d starts, want a second one", u.starts.Load())
		}
	})
}

func TestMembersAreSpreadOverTheSlots(t *testing.T) {
	within(t, newServer("2025-11-25"), share(2), func(t *testing.T, s *sessions.Supplier) {
		count := map[*sessions.Session]int{}
		for range 4 {
			m, _ := join(t, s)
			count[m.Session]++
		}
		for _, n := range count {
			if n != 2 {
				t.Errorf("a session has %d members, want 2", n)
			}
		}
	})
}

func TestAttemptLendsItsTurn(t *testing.T) {
	within(t, newServer("2025-11-25"), nil, func(t *testing.T, s *sessions.Supplier) {
		take := func(a *sessions.Attempt) *sessions.Session {
			took, _, err := a.Take(t.Context(), true)
			if err != nil {
				t.Error(err)
			}
			return took
		}
		first, second := s.NewAttempt(""), s.NewAttempt("")
		one := take(first)
		var two *sessions.Session
		var resumed bool
		var wg sync.WaitGroup
		wg.Go(func() { two = take(second) })
		synctest.Wait()
		if two != nil {
			t.Error("a second attempt has a turn, of one")
		}
		first.Lend()
		wg.Wait()
		wg.Go(func() { resumed = first.Resume(t.Context()) == nil })
		synctest.Wait()
		if two == nil || resumed {
			t.Errorf("after Lend: the second has %v, the first has resumed: %t", two, resumed)
		}
		second.End()
		wg.Wait()
		if !resumed {
			t.Error("the first attempt has no turn again")
		}
		first.End()
		first.End() // does nothing
		one.End(errTest)
		two.End(errTest)
	})
}

func TestFailedStartGivesItsTurnBack(t *testing.T) {
	u := newServer("2025-11-25")
	u.fail = errTest
	within(t, u, nil, func(t *testing.T, s *sessions.Supplier) {
		for range 3 {
			a := s.NewAttempt("")
			_, _, err := a.Take(t.Context(), true)
			if _, ok := errors.AsType[*handshake.Failure](err); !ok || !errors.Is(err, errTest) {
				t.Errorf("got %v, want a failure by %v", err, errTest)
			}
			a.End()
		}
	})
}

func TestEndOfASessionIsToldItsOwner(t *testing.T) {
	within(t, newServer("2025-11-25"), nil, func(t *testing.T, s *sessions.Supplier) {
		a := s.NewAttempt("")
		session, _, err := a.Take(t.Context(), true)
		a.End()
		if err != nil {
			t.Fatal(err)
		}
		var got error
		if !session.Own(func(err error) { got = err }) {
			t.Error("a session that has just been started is over")
		}
		session.End(errTest)
		<-session.Done()
		if !errors.Is(got, errTest) {
			t.Errorf("the owner was told %v, want %v", got, errTest)
		}
		if session.Own(nil) {
			t.Error("a session that is over can be owned")
		}
	})
}

func TestPoolTakesBackWhatItNeeds(t *testing.T) {
	u := newServer("2025-11-25")
	within(t, u, func(o *sessions.Options) { o.Warm = 1 }, func(t *testing.T, s *sessions.Supplier) {
		s.Start()
		synctest.Wait()
		a := s.NewAttempt("")
		warm, from, err := a.Take(t.Context(), true)
		if err != nil || from != sessions.FromPool {
			t.Fatalf("got a session from %q, %v", from, err)
		}
		synctest.Wait()
		if s.GiveBack(warm) {
			t.Error("a full pool took a session back")
		}
		warm.End(errTest)
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
			a := s.NewAttempt("")
			session, _, err := a.Take(t.Context(), true)
			if err == nil {
				err = a.Initialize(t.Context(), session, json.RawMessage("{}"))
			}
			if err != nil {
				t.Fatal(err)
			}
			a.End()
			session.End(errTest)
		}
	})
	if n := strings.Count(log.String(), "unknown protocol version"); n != 1 {
		t.Errorf("%d warnings, want 1: %s", n, log.String())
	}
}
