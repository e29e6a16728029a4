package gateway_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// slow delays every start.
func slow(d time.Duration) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// secondFails makes the second start fail, and delays those after it.
func secondFails(d time.Duration) func(context.Context, int) error {
	return func(ctx context.Context, n int) error {
		if n > 2 {
			return slow(d)(ctx, n)
		}
		return failingFrom(2, 2)(ctx, n)
	}
}

var errNoServer = errors.New("no such file")

// failing makes the first n starts fail.
func failing(n int) func(context.Context, int) error { return failingFrom(1, n) }

// failingFrom makes the starts fail from one to another.
func failingFrom(first, last int) func(context.Context, int) error {
	return func(_ context.Context, start int) error {
		if first <= start && start <= last {
			return errNoServer
		}
		return nil
	}
}

func TestReadyWithoutAWordOfTheClient(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Settings{AnnounceDelay: 100 * time.Millisecond}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, connstate.Client{})
		time.Sleep(100*time.Millisecond - 1)
		p.want()
		u.session(t, 1).wantMethods(t) // the server starts with the GET, and is not initialized yet
		time.Sleep(time.Nanosecond)
		p.want("mcp-response: auto " + serverResult)
		u.session(t, 1).wantMethods(t, "initialize", "notifications/initialized")
		if got, want := p.c.Snapshot().Initialized, (connstate.Server{Name: "played", Version: "1.0", ProtocolVersion: "2025-11-25"}); got == nil || *got != want {
			t.Errorf("the snapshot has the server %+v, want %+v", got, want)
		}
		params := string(u.session(t, 1).message(t, "initialize").Params())
		want := `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcp-sse","version":"`
		if len(params) < len(want) || params[:len(want)] != want {
			t.Errorf("synthetic params = %s, want %s…", params, want)
		}
		p.post(request("1", "tools/list"))
		p.want(answered("1", 1, "tools/list"), "mcp-response: "+answered("1", 1, "tools/list")) // undecided: both names
	})
}

// A request for which the gate or the table of requests has no room is refused, and so is one whose id is
// in use.
func TestRequestsAreBounded(t *testing.T) {
	u := &server{dial: slow(time.Second)}
	withClient(t, u, gateway.Settings{Options: gateway.Options{RequestTimeout: time.Second}, GateQueue: 2, MaxPending: 3}, func(t *testing.T, p *peer) {
		p.post(request("1", "a"), request("2", "b"), request("3", "c"), `{"jsonrpc":"2.0","method":"notifications/x"}`)
		p.want("3 gate_full retryable=true")
		time.Sleep(time.Second)
		p.want(answered("1", 1, "a"), answered("2", 1, "b"))
		p.post(request("1", "hang"), request("2", "hang"), request("1", "tools/list"), request(`"1"`, "tools/list"))
		p.want("null duplicate_id retryable=true", answered(`"1"`, 1, "tools/list")) // an error under the id 1 would be taken for the answer to the first
		p.post(request("3", "hang"), request("4", "hang"), request("5", "ping"))
		p.want("4 too_many_requests retryable=true", "5 too_many_requests retryable=true")
		time.Sleep(time.Second)
		p.compare(slices.Sorted(slices.Values(p.take())), []string{"1 timeout retryable=false", "2 timeout retryable=false", "3 timeout retryable=false"})
		p.served("1", 1, "tools/list")
	})
}

// Late is not failed: requests that waited too long get an error, the start goes on
// and is used.
func TestLateIsNotFailed(t *testing.T) {
	u := &server{dial: slow(20 * time.Second)}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage})
		time.Sleep(time.Second)
		p.post(request("1", "tools/list"), initialize("0", "2025-06-18", emptyDeclared)) // which waits for the start itself
		time.Sleep(4*time.Second - 1)
		p.want()
		time.Sleep(time.Nanosecond)
		p.want("mcp-response: auto initialization_error request_processing attempt 1")
		time.Sleep(time.Second)
		p.want("1 initialization_error request_processing attempt 1")
		p.wantState(connstate.Initializing)
		time.Sleep(10 * time.Second)
		p.post(request("2", "tools/list"))
		time.Sleep(4 * time.Second) // the start takes 20 s in all
		p.want("mcp-response: auto "+serverResult, asVersion("0", "2025-06-18"), answered("2", 1, "tools/list"))
		equal(t, "starts, want the one that was slow", u.starts(), 1)
	})
}

// Clients of a server that writes text, say, instead of messages learn it as soon as it is
// known: from errors, and from the readiness.
func TestServerWithAnExcuse(t *testing.T) {
	advice := "; it writes text to stdout"
	u := &server{handle: func(*serverSession, *jsonrpc.Message) bool { return true }}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage, Local: true})
		time.Sleep(time.Second)
		p.post(request("1", "tools/list"))
		time.Sleep(4*time.Second + 1)
		u.excuse.Store(&advice)
		time.Sleep(55 * time.Second)
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		var got []string
		for _, e := range p.got {
			m, _ := jsonrpc.Parse(e.Data)
			details, _ := rawjson.Member(m.Error(), "data", "details")
			text, _ := rawjson.Text(details)
			got = append(got, text)
		}
		want := []string{
			"the server is still starting: it did not answer within 5s",
			"the server is still starting: it did not answer within 5s" + advice,
			"the server did not answer within 1m0s (start-timeout)" + advice,
		}
		equal(t, "details", got, want)
		wantText(t, "error", g.Ready(t.Context()), advice)
	})
}

func TestStartTimeout(t *testing.T) {
	u := &server{dial: slow(time.Hour)}
	withClient(t, u, gateway.Settings{Options: gateway.Options{StartTimeout: 10 * time.Second}, MaxHandshakeAttempts: 2}, func(t *testing.T, p *peer) {
		p.post(initialize("0", "2025-06-18", emptyDeclared))
		time.Sleep(20*time.Second - 1)
		p.want()
		time.Sleep(time.Minute)
		p.want("0 initialization_error request_creation attempt 2")
		p.wantState(connstate.Failed)
		equal(t, "starts", u.starts(), 2)
	})
}

func TestFailedStartIsTriedAgain(t *testing.T) {
	u := &server{dial: failing(2)}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage})
		p.wantState(connstate.Failed)
		time.Sleep(time.Minute) // longer than two pauses
		p.want("mcp-response: auto initialization_error request_creation attempt 1",
			"mcp-response: auto initialization_error request_creation attempt 2",
			"mcp-response: auto "+serverResult)
		p.wantState(connstate.Ready)
		p.served("1", 3, "tools/list")
	})
}

func slowFailure(context.Context, int) error {
	time.Sleep(time.Second)
	return errNoServer
}

func TestCloseDuringTheStart(t *testing.T) {
	for name, u := range map[string]*server{
		"dial":      {dial: slow(time.Hour)},
		"handshake": {handle: func(*serverSession, *jsonrpc.Message) bool { return true }},
		"pause":     {dial: failing(100)},
		"hold":      {},
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, u, withHold, func(t *testing.T, p *peer) {
				if name != "hold" {
					p.post(request("1", "tools/list"), initialize("0", "2025-11-25", emptyDeclared))
				}
				synctest.Wait()
				p.c.Close("client")
				synctest.Wait()
				equal(t, "sessions are left", u.open(), 0)
			})
		})
	}
}

// ping and server/discover are answered in any state.
func TestAnsweredHereInAnyState(t *testing.T) {
	for state, u := range map[connstate.State]*server{
		connstate.Initializing: {dial: slow(time.Second)}, connstate.Ready: {}, connstate.Failed: {dial: failing(1)}, connstate.Draining: {},
	} {
		withClient(t, u, gateway.Settings{MaxHandshakeAttempts: 1}, func(t *testing.T, p *peer) {
			synctest.Wait()
			if state == connstate.Draining {
				_, err := p.c.Drain()
				must(t, err)
			}
			p.wantState(state)
			p.post(request(`"p"`, "ping"), request("2", "server/discover"))
			p.want(`"p" {}`, "2 error -32601")
		})
	}
}

// After the last attempt no request waits, until the client sends another.
func TestAttemptsAreBounded(t *testing.T) {
	u := &server{dial: failing(4)}
	withClient(t, u, gateway.Settings{MaxHandshakeAttempts: 3}, func(t *testing.T, p *peer) {
		time.Sleep(14 * time.Second) // the pauses are at most 1 s and 2 s
		if u.starts() != 3 {
			t.Fatalf("%d starts, want 3", u.starts())
		}
		p.wantState(connstate.Failed)
		p.post(initialize("0", "2025-06-18", emptyDeclared))
		p.want("0 initialization_error request_creation attempt 4") // at once, and it failed again
		p.post(request("3", "tools/list"))
		p.want("3 initialization_error request_creation attempt 4") // no start: the last one was a moment ago
		p.post(initialize("0", "2025-11-25", emptyDeclared), request("4", "tools/list"))
		p.want("0 "+serverResult, answered("4", 5, "tools/list"))
		p.wantState(connstate.Ready)
	})
}

// A client cannot know that the server is back. After the announced retry time, its
// next request triggers one start, for all requests that wait.
func TestRequestRevivesAConnectionThatGaveUp(t *testing.T) {
	u := &server{dial: func(ctx context.Context, n int) error {
		_ = slow(10*time.Millisecond)(ctx, n)
		return failing(2)(ctx, n)
	}}
	withClient(t, u, gateway.Settings{MaxHandshakeAttempts: 1}, func(t *testing.T, p *peer) {
		time.Sleep(10 * time.Millisecond)
		wait := p.retryAfter(t)
		time.Sleep(wait - time.Millisecond)
		if left := p.retryAfter(t); left > 2*time.Millisecond || u.starts() != 1 {
			t.Fatalf("told to wait %s more after %d starts, want what is left after one", left, u.starts())
		}
		for attempt := 2; attempt <= 3; attempt++ {
			time.Sleep(max(wait, 2*time.Millisecond))
			p.post(request("1", "a"), request("2", "b"), request("3", "c"))
			p.want()
			time.Sleep(10 * time.Millisecond)
			equal(t, "starts for three requests", u.starts(), attempt)
			if attempt == 2 {
				p.want("1 initialization_error request_creation attempt 2", "2 initialization_error request_creation attempt 2",
					"3 initialization_error request_creation attempt 2")
				wait = p.retryAfter(t) + time.Millisecond // the time that is told is rounded down
			}
		}
		p.want(answered("1", 3, "a"), answered("2", 3, "b"), answered("3", 3, "c"))
		p.wantState(connstate.Ready)
	})
}

// retryAfter sends a request and returns the wait that its error names.
func (p *peer) retryAfter(t *testing.T) time.Duration {
	t.Helper()
	p.deliver(request("0", "tools/list"))
	p.mu.Lock()
	defer p.mu.Unlock()
	m, err := jsonrpc.Parse(p.got[len(p.got)-1].Data)
	p.got = nil
	must(t, err)
	raw, _ := rawjson.Member(m.Error(), "data", "retryAfterMs")
	ms, err := strconv.Atoi(string(raw))
	if err != nil {
		t.Fatalf("no retryAfterMs in %s", m.Raw())
	}
	return time.Duration(ms) * time.Millisecond
}

// The client's own initialize does not wait for the end of the pause, and failed
// starts do not fail it as long as another start follows.
func TestInitializeEndsThePauseBetweenStarts(t *testing.T) {
	u := &server{dial: failingFrom(2, 5)} // after a probe
	withWorked(t, u, gateway.Settings{MaxHandshakeAttempts: 100}, func(t *testing.T, p *peer) {
		for n := 1; n <= 3; n++ {
			p.wantState(connstate.Failed)
			equal(t, "starts", u.starts(), n+1)
			p.post(initialize(strconv.Itoa(n), "2025-11-25", emptyDeclared))
			p.want()
		}
		time.Sleep(time.Minute)
		p.want("1 "+serverResult, "2 "+serverResult, "3 "+serverResult)
	})
}

// An early request waits through failed starts, up to its own timeout.
func TestRequestsWaitThroughFailedStarts(t *testing.T) {
	u := &server{dial: failingFrom(2, 3)} // after a probe
	withWorked(t, u, gateway.Options{InitializationTimeout: 10 * time.Second}, func(t *testing.T, p *peer) {
		p.post(request("1", "tools/list"), initialize("0", "2025-11-25", emptyDeclared))
		p.want()
		p.wantState(connstate.Failed)
		p.post(request("2", "tools/list"))
		time.Sleep(10*time.Second - time.Nanosecond) // two pauses are at most 1 s and 2 s
		p.want("0 "+serverResult, answered("1", 4, "tools/list"), answered("2", 4, "tools/list"))
		equal(t, "starts", u.starts(), 4)
	})
}

// When a request's own timeout passes, its error describes how the last start failed.
func TestRequestIsToldHowTheLastStartFailed(t *testing.T) {
	u := &server{dial: failingFrom(2, 1001)} // after a probe
	withWorked(t, u, gateway.Settings{MaxHandshakeAttempts: 1000, InitializeTimeout: 7 * time.Second}, func(t *testing.T, p *peer) {
		p.post(request("1", "tools/list"), initialize("0", "2025-11-25", emptyDeclared))
		time.Sleep(5*time.Second - time.Nanosecond)
		p.want()
		time.Sleep(time.Nanosecond)
		p.want("1 initialization_error request_creation*")
		time.Sleep(2*time.Second - time.Nanosecond)
		p.want()
		time.Sleep(time.Nanosecond)
		p.want("0 initialization_error request_creation*")
	})
}

// An error says how long its own request has waited: an initialize of the client waits for another time than the rest.
func TestLateInitializeSaysHowLongItWaited(t *testing.T) {
	u := &server{handle: func(*serverSession, *jsonrpc.Message) bool { return true }}
	with := gateway.Settings{InitializeTimeout: 7 * time.Second, Options: gateway.Options{InitializationTimeout: time.Minute}}
	inFakeTime(t, u, with, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage, Local: true})
		p.post(initialize("0", "2025-11-25", emptyDeclared))
		time.Sleep(8 * time.Second)
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		equal(t, "events", len(p.got), 1)
		wantText(t, "error", string(p.got[0].Data), "it did not answer within 7s")
	})
}

// withWorked is withClient with a server that has worked before.
func withWorked[O options](t *testing.T, u *server, opts O, test func(t *testing.T, p *peer)) {
	t.Helper()
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		must(t, g.Ready(t.Context()))
		test(t, connect(t, g, plain))
	})
}

// A server that has never worked has its clients wait for no third start that fails like
// the two before. Starts go on, and their failures answer what has come since.
func TestServerThatNeverWorkedIsNotWaitedFor(t *testing.T) {
	u := &server{dial: failing(3)}
	withClient(t, u, gateway.Options{InitializationTimeout: time.Minute}, func(t *testing.T, p *peer) {
		p.post(request("1", "tools/list"))
		p.wantState(connstate.Failed)
		p.want()
		p.post(initialize("0", "2025-11-25", emptyDeclared)) // ends the pause
		p.want("1 initialization_error request_creation attempt 2", "0 initialization_error request_creation attempt 2")
		p.wantState(connstate.Failed)
		p.post(request("2", "tools/list"))
		p.want("2 initialization_error request_creation attempt 2")
		equal(t, "requests failed", p.c.Snapshot().RequestsFailed, 3)
		time.Sleep(time.Minute)
		p.wantState(connstate.Ready)
		p.served("3", 4, "tools/list")
	})
}

// Another cause than the last one is no reason to stop waiting.
func TestServerThatFailsDifferentlyIsWaitedFor(t *testing.T) {
	u := &server{dial: failing(1), handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if s.n == 1 {
			s.die()
		}
		return s.n == 1
	}}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		p.post(initialize("0", "2025-11-25", emptyDeclared))
		time.Sleep(4 * time.Second)
		p.want("0 " + serverResult)
	})
}
