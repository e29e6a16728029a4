package gateway_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// These tests hold what the life of a session (docs/design/life.md) is for: who needs a server has one, and
// nobody else.

// A session that is lost while its client needs nothing is not replaced, wherever its client is in its time:
// the connection sleeps until the next message.
func TestLostSessionOfAKnownServerSleeps(t *testing.T) {
	for _, after := range []time.Duration{20 * time.Second, 2 * time.Minute, 4 * time.Minute} {
		u := &server{capabilities: withLists, handle: lists(nil)}
		inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
			learned(t, g, u)
			p := returns(t, g)
			p.post(request("1", "tools/call"))
			p.want(answered("1", 2, "tools/call"))
			time.Sleep(after)
			u.session(t, 2).die()
			time.Sleep(time.Minute)
			p.wantState(connstate.Resting)
			equal(t, "starts", u.starts(), 2)
			p.want() // the lists that it was told of hold
			p.post(request("2", "tools/list"), request("3", "tools/call"))
			p.want(`2 {"of":"tools/list"}`, answered("3", 3, "tools/call"))
		})
	}
}

// A subscription needs a session.
func TestLossWithASubscriptionStartsAgain(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := returns(t, g)
		p.post(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a://1"}}`)
		p.want("1 *")
		time.Sleep(time.Minute)
		u.session(t, 2).die()
		time.Sleep(time.Minute)
		p.wantState(connstate.Ready)
		equal(t, "subscriptions of the next session", u.session(t, 3).count("resources/subscribe"), 1)
	})
}

// Lists of which the server has said that they have changed are not answered from memory once its session is lost:
// the next one answers, or what another client has learned later.
func TestListsThatChangedBeforeALossAreNotAnswered(t *testing.T) {
	u := &server{capabilities: withLists}
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		return lists(map[string]string{"tools/list": fmt.Sprintf(`{"tools":"%d"}`, min(s.n, 3))})(s, m)
	}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := returns(t, g)
		p.post(request("1", "tools/call"))
		time.Sleep(time.Minute)
		p.take()
		u.session(t, 2).say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		p.want("notifications/tools/list_changed")
		time.Sleep(time.Minute)
		u.session(t, 2).die()
		synctest.Wait()
		p.post(request("2", "tools/list"))
		time.Sleep(time.Minute)
		got := strings.Join(p.take(), "\n")
		if !strings.Contains(got, `2 {"tools":"3"}`) {
			t.Errorf("the client got %s", got)
		}
	})
}

// Lists that one client's session reads after memory learned its own are told to the others that sleep.
func TestRenewedListsReachThoseWhoSleep(t *testing.T) {
	u := &server{capabilities: withLists}
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		return lists(map[string]string{"tools/list": fmt.Sprintf(`{"tools":"%d"}`, s.n)})(s, m)
	}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		sleeps, wakes := returns(t, g), returns(t, g)
		time.Sleep(time.Minute)
		wakes.post(request("1", "tools/call"))
		time.Sleep(time.Second)
		sleeps.wantState(connstate.Resting)
		sleeps.want("notifications/tools/list_changed")
		sleeps.post(request("1", "tools/list"))
		sleeps.want(`1 {"tools":"2"}`)
		equal(t, "starts", u.starts(), 2)
	})
}

// A client that waits for a start has its tools as soon as memory has: another start was faster.
func TestWaitingClientIsToldWhatMemoryLearns(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil), dial: laterIn(20 * time.Second)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		first := connect(t, g, plain)
		synctest.Wait() // its start is the first
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/list"))
		synctest.Wait() // that of p has begun
		first.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/list"))
		time.Sleep(time.Second)
		first.want("0 "+resultWith(withLists), `1 {"of":"tools/list"}`)
		p.want("0 "+resultWith(withLists), `1 {"of":"tools/list"}`)
		p.wantState(connstate.Initializing)
	})
}

// An initialize that waits for a start is refused at once when the connection drains.
func TestWaitingInitializeIsRefusedAtADrain(t *testing.T) {
	u := &server{dial: slow(time.Minute)}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
		time.Sleep(time.Second)
		_, err := p.c.Drain()
		must(t, err)
		synctest.Wait()
		p.want("0 draining retryable=true")
	})
}

// Without a session that somebody needs, a connection has no goroutine: not while it sleeps, nor while its session
// is idle.
func TestNothingRunsForAnIdleConnection(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		time.Sleep(time.Minute)
		before := goroutinesOf("mcp-sse/handshake.", "mcp-sse/internal/bridge.")
		asleep := returns(t, g)
		awake := returns(t, g)
		awake.post(request("1", "tools/call"))
		awake.want(answered("1", 2, "tools/call"))
		time.Sleep(time.Minute)
		if now := goroutinesOf("mcp-sse/handshake.", "mcp-sse/internal/bridge."); len(now) > len(before) {
			t.Errorf("%d goroutines more:\n%s", len(now)-len(before), strings.Join(now, "\n\n"))
		}
		asleep.wantState(connstate.Resting)
		awake.wantState(connstate.Ready)
	})
}

// The gate has room for all requests that a lost session gives back.
func TestAllRequestsOfALostSessionReturn(t *testing.T) {
	u := &server{handle: inSession(1, on("resources/read", func(*serverSession, *jsonrpc.Message) {}))}
	inFakeTime(t, u, gateway.Options{MaxInFlight: 1000}, func(t *testing.T, g *gateway.Gateway) {
		p := connectReady(t, g)
		time.Sleep(time.Minute)
		for i := range 200 {
			p.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"a://1"}}`, i+1))
		}
		synctest.Wait()
		u.session(t, 1).die()
		time.Sleep(time.Minute)
		bad := 0
		got := p.take()
		for _, e := range got {
			if strings.Contains(e, "gate_full") {
				bad++
			}
		}
		if bad > 0 || len(got) != 200 {
			t.Errorf("%d of %d answers are gate_full", bad, len(got))
		}
	})
}

// Without the gateway's handshake, a start that hangs is given up when another server is configured, although
// the client's initialize waits at the gate.
func TestReplacedDuringAStartWithoutAutoInitialize(t *testing.T) {
	old, next := &server{dial: slow(time.Hour)}, &server{}
	opts := gateway.Options{NoAutoInitialize: true}
	inFakeTime(t, old, opts, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.deliver(initialize("0", "2025-11-25", `{}`))
		reconfigure(t, g, next, opts)
		time.Sleep(time.Second)
		p.want("0 *")
		p.wantState(connstate.Ready)
		equal(t, "starts of the next server", next.starts(), 1)
	})
}

// The server before is not started again, in a pause, once another one is configured.
func TestReplacedInAPauseWithoutAutoInitialize(t *testing.T) {
	old, next := &server{dial: failing(100)}, &server{}
	opts := gateway.Options{NoAutoInitialize: true}
	inFakeTime(t, old, opts, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.deliver(initialize("0", "2025-11-25", `{}`))
		starts := old.starts()
		p.wantState(connstate.Failed)
		reconfigure(t, g, next, opts)
		time.Sleep(time.Minute)
		p.take()
		equal(t, "starts of the server before", old.starts(), starts)
	})
}

// Nothing is kept of a client that has left a shared session.
func TestNothingIsKeptOfAClientThatLeftASharedSession(t *testing.T) {
	opts := remembering()
	opts.Sessions = gateway.SessionsShared
	inFakeTime(t, &server{capabilities: withLists, handle: lists(nil)}, opts, func(t *testing.T, g *gateway.Gateway) {
		stays := connect(t, g, plain)
		time.Sleep(time.Minute)
		stays.wantState(connstate.Ready)
		var kept []weak.Pointer[connstate.Connection]
		for range 20 {
			p := connect(t, g, plain)
			time.Sleep(time.Second)
			p.wantState(connstate.Ready)
			kept = append(kept, weak.Make(p.c.Connection))
			p.c.Close(connstate.ClosedClient)
			synctest.Wait()
			p = nil
		}
		time.Sleep(time.Hour)
		for range 5 {
			runtime.GC()
		}
		n := 0
		for _, k := range kept {
			if k.Value() != nil {
				n++
			}
		}
		if n > 2 {
			t.Errorf("%d of 20 connections are kept", n)
		}
	})
}

// goroutinesOf returns those that run, or were begun by, a function whose name has one of some texts in it.
func goroutinesOf(names ...string) (all []string) {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for one := range strings.SplitSeq(string(buf), "\n\n") {
		isMeant := slices.ContainsFunc(names, func(name string) bool { return strings.Contains(one, name) })
		if isMeant && !strings.Contains(one, "goroutinesOf(") {
			all = append(all, one)
		}
	}
	return all
}

// Of what memory has and what the client's own session has said, the later one answers.
func TestOlderMemoryDoesNotAnswer(t *testing.T) {
	tools := `{"tools":["old"]}`
	u := &server{capabilities: withLists, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		return lists(map[string]string{"tools/list": tools})(s, m)
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		tools = `{"tools":["new"]}`
		p := returns(t, g)
		p.post(request("1", "tools/call")) // what its session says from now on is for this client alone
		time.Sleep(time.Second)
		p.take()
		time.Sleep(30 * time.Minute)
		p.wantState(connstate.Resting)
		p.post(request("2", "tools/list"))
		p.want(`2 {"tools":["new"]}`)
		equal(t, "starts", u.starts(), 2)
	})
}

// Where the server sees who its clients are, a memory that has become old costs one start, not one at each rest.
func TestForwardedOldMemoryCostsOneStart(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	opts := remembering()
	opts.ForwardHeaders = []string{"X-Tenant"}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		time.Sleep(25 * time.Hour)
		for range 3 {
			p := connect(t, g, plain)
			p.post(initialize("0", "2025-11-25", `{"roots":{}}`), initialized)
			time.Sleep(time.Hour)
			p.wantState(connstate.Resting)
			p.c.Close(connstate.ClosedClient)
		}
		equal(t, "starts", u.starts(), 2)
	})
}
