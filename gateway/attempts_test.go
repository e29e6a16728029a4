package gateway_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// After the last attempt no request waits, until the client sends another.
func TestAttemptsAreBounded(t *testing.T) {
	u := &server{dial: failing(4)}
	inFakeTime(t, u, gateway.Settings{MaxHandshakeAttempts: 3}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
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
	inFakeTime(t, u, gateway.Settings{MaxHandshakeAttempts: 1}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		for attempt := 1; attempt <= 2; attempt++ {
			time.Sleep(10 * time.Millisecond)
			p.wantState(connstate.Failed)
			wait := p.retryAfter(t, "1")
			if wait > time.Millisecond {
				time.Sleep(wait - time.Millisecond)
				if left := p.retryAfter(t, "1"); left > 2*time.Millisecond {
					t.Fatalf("told to wait %s more, want what is left", left)
				}
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Millisecond) // the time that is told is rounded down
			if u.starts() != attempt {
				t.Fatalf("%d starts, want %d: nobody has asked in time", u.starts(), attempt)
			}
			p.post(request("1", "a"), request("2", "b"), request("3", "c"))
			p.want()
			if u.starts() != attempt+1 {
				t.Errorf("%d starts for three requests, want one", u.starts()-attempt)
			}
			if attempt == 1 {
				time.Sleep(10 * time.Millisecond)
				p.want("1 initialization_error request_creation attempt 2", "2 initialization_error request_creation attempt 2",
					"3 initialization_error request_creation attempt 2")
			}
		}
		time.Sleep(10 * time.Millisecond)
		p.want(answered("1", 3, "a"), answered("2", 3, "b"), answered("3", 3, "c"))
		p.wantState(connstate.Ready)
	})
}

// retryAfter sends a request and returns the wait that its error names.
func (p *peer) retryAfter(t *testing.T, id string) time.Duration {
	t.Helper()
	p.post(request(id, "tools/list"))
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.got) == 0 {
		t.Fatal("no answer")
	}
	m, err := jsonrpc.Parse(p.got[len(p.got)-1].Data)
	p.got = nil
	if err != nil || m.Error() == nil {
		t.Fatalf("got %v, want an error", m)
	}
	raw, _ := jsonrpc.Member(m.Error(), "data", "retryAfterMs")
	ms, err := strconv.Atoi(string(raw))
	if err != nil {
		t.Fatalf("no retryAfterMs in %s", m.Raw())
	}
	return time.Duration(ms) * time.Millisecond
}

// The client's own initialize does not wait for the end of the pause, and failed
// starts do not fail it as long as another start follows.
func TestInitializeEndsThePauseBetweenStarts(t *testing.T) {
	u := &server{dial: failing(4)}
	inFakeTime(t, u, gateway.Settings{MaxHandshakeAttempts: 100}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		for n := 1; n <= 3; n++ {
			p.wantState(connstate.Failed)
			if u.starts() != n {
				t.Errorf("%d starts, want %d", u.starts(), n)
			}
			p.post(initialize(strconv.Itoa(n), "2025-11-25", emptyDeclared))
			p.want()
		}
		time.Sleep(time.Minute)
		p.want("1 "+serverResult, "2 "+serverResult, "3 "+serverResult)
	})
}

// An early request waits through failed starts, up to its own timeout.
func TestRequestsWaitThroughFailedStarts(t *testing.T) {
	u := &server{dial: failing(2)}
	inFakeTime(t, u, gateway.Options{InitializationTimeout: 10 * time.Second}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(request("1", "tools/list"), initialize("0", "2025-11-25", emptyDeclared))
		p.want()
		p.wantState(connstate.Failed)
		p.post(request("2", "tools/list"))
		time.Sleep(10*time.Second - time.Nanosecond) // two pauses are at most 1 s and 2 s
		p.want("0 "+serverResult, answered("1", 3, "tools/list"), answered("2", 3, "tools/list"))
		if u.starts() != 3 {
			t.Errorf("%d starts, want 3", u.starts())
		}
	})
}

// When a request's own timeout passes, its error describes how the last start failed.
func TestRequestIsToldHowTheLastStartFailed(t *testing.T) {
	u := &server{dial: failing(1000)}
	inFakeTime(t, u, gateway.Settings{MaxHandshakeAttempts: 1000, InitializeTimeout: 7 * time.Second}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
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
