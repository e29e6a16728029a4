package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

var sharing = gateway.Options{Sessions: gateway.SessionsShared}

func TestAllConnectionsShareASession(t *testing.T) {
	u := &server{dial: slow(time.Second)}
	inFakeTime(t, u, sharing, func(t *testing.T, g *gateway.Gateway) {
		var peers []*peer
		for range 10 { // all wait for one start
			p := connect(t, g, plain)
			p.post(request("1", "tools/list"))
			peers = append(peers, p)
		}
		time.Sleep(time.Second)
		for _, p := range peers {
			p.want(answered("1", 1, "tools/list"))
		}
		late := connectReady(t, g)
		for _, p := range append(peers, late) {
			p.c.Close("left")
		}
		synctest.Wait()
		all, _ := handshakes(t, g)
		restarts := metric(t, g, "mcp_sse_session_restarts_total")
		if n := u.open(); n != 1 || u.starts() != 1 || all["ok"] != 1 || restarts != 0 {
			t.Errorf("%d sessions are open after %d starts, %v and %g restarts, want 1 that goes on after 1", n, u.starts(), all, restarts)
		}
	})
}

// The start check of a shared session fills the memory.
func TestCheckOfASharedSessionIsRemembered(t *testing.T) {
	opts := remembering()
	opts.Sessions = gateway.SessionsShared
	inFakeTime(t, &server{capabilities: withLists, handle: lists(nil)}, opts, func(t *testing.T, g *gateway.Gateway) {
		_, err := forprogram.Of(g).CheckStart(t.Context())
		equal(t, "error of the check", err, nil)
		_, known := forprogram.Of(g).Remembered()
		equal(t, "the server is remembered", known, true)
	})
}

// A shared session ends when no client has been there for ProcessIdle, and the next one starts another; unless
// the session is wanted ahead of clients.
func TestSharedSessionWithoutClientsEnds(t *testing.T) {
	for warm, want := range map[int]int{0: 0, 1: 1} {
		u := &server{capabilities: withLists, handle: lists(nil)}
		opts := remembering()
		opts.Sessions, opts.Warm = gateway.SessionsShared, warm
		inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
			p := connect(t, g, plain)
			p.served("1", 1, "tools/call")
			time.Sleep(time.Hour)
			equal(t, "sessions with a client", u.open(), 1)
			p.c.Close(connstate.ClosedClient)
			time.Sleep(9 * time.Minute)
			equal(t, "sessions after 9 min", u.open(), 1)
			time.Sleep(7 * time.Minute)
			equal(t, "sessions after 16 min", u.open(), want)
			connect(t, g, plain).served("1", 2-want, "tools/call")
			equal(t, "losses", metric(t, g, "mcp_sse_session_restarts_total"), 0)
			equal(t, "readiness", g.Ready(t.Context()), nil)
		})
	}
}

// The stored result answers a client's initialize, whatever it declares: the session declares
// nothing.
func TestSharedSessionAnswersInitializeFromTheStoredResult(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, sharing, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("7", "2025-03-26", `{"roots":{},"sampling":{},"elicitation":{}}`), initialized, request("8", "tools/list"))
		p.want(`7 {"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"played","version":"1.0"}}`,
			answered("8", 1, "tools/list"))
		q := connect(t, g, plain)
		q.served("8", 1, "tools/call")
		u.session(t, 1).wantMethods(t, "initialize", "notifications/initialized", "tools/list", "tools/call")
		wantText(t, "the shared session was initialized with", string(u.session(t, 1).message(t, "initialize").Params()), `"capabilities":{}`)
	})
}

func TestSharedSessionIsStartedAhead(t *testing.T) {
	u := &server{dial: slow(time.Second)}
	opts := gateway.Options{Sessions: gateway.SessionsShared, Warm: 1}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		g.Start()
		time.Sleep(2 * time.Second)
		equal(t, "sessions are open", u.open(), 1)
		connect(t, g, plain).wantState(connstate.Ready)
	})
}

// The loss of a shared session ends no stream: all go on, over one new session.
func TestSharedSessionLost(t *testing.T) {
	u := &server{capabilities: `{"tools":{"listChanged":true}}`, dial: slow(time.Second)}
	inFakeTime(t, u, sharing, func(t *testing.T, g *gateway.Gateway) {
		var peers []*peer
		for range 3 {
			peers = append(peers, connect(t, g, plain))
		}
		time.Sleep(proven)
		peers[0].post(request("1", "hang"))
		peers[1].post(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a://1"}}`)
		synctest.Wait()
		u.session(t, 1).die()
		peers[0].want("1 session_lost retryable=false")
		peers[1].want("1 *")
		for _, p := range peers {
			p.wantState(connstate.Initializing)
			p.post(request("2", "tools/call"))
		}
		time.Sleep(time.Second)
		for _, p := range peers {
			got := p.take()
			slices.Sort(got)
			p.compare(got, []string{answered("2", 2, "tools/call"), "notifications/tools/list_changed"})
		}
		if got := u.session(t, 2).methods(); len(got) < 3 || got[2] != "resources/subscribe" && !strings.Contains(fmt.Sprint(got), "resources/subscribe") {
			t.Errorf("the new session got %q, want the subscription of one client restored", got)
		}
		equal(t, "starts", u.starts(), 2)
		equal(t, "mcp_sse_session_restarts_total: one session was lost, whoever was on it", metric(t, g, "mcp_sse_session_restarts_total"), 1)
	})
}

// A client that crashes the server again and again costs the others only time.
func TestOneClientsCrashesDoNotMakeOthersGiveUp(t *testing.T) {
	u := &server{handle: on("crash", dies)}
	inFakeTime(t, u, sharing, func(t *testing.T, g *gateway.Gateway) {
		bad, good := connect(t, g, plain), connect(t, g, plain)
		for i := range 100 {
			id := fmt.Sprint(i)
			bad.post(request(id, "crash"))
			bad.want(id + " session_lost retryable=false")
			time.Sleep(20 * time.Second) // longer than the longest pause
			good.served(id, i+2, "tools/list")
		}
	})
}

func TestSharedStartThatFails(t *testing.T) {
	var up atomic.Bool
	u := &server{dial: func(context.Context, int) error {
		if up.Load() {
			return nil
		}
		return errNoServer
	}}
	inFakeTime(t, u, sharing, func(t *testing.T, g *gateway.Gateway) {
		var peers []*peer
		for range 50 {
			peers = append(peers, connect(t, g, plain))
		}
		time.Sleep(time.Minute)
		if n := u.starts(); n > 30 {
			t.Errorf("%d starts in a minute for 50 connections, want one at a time with pauses", n)
		}
		if err := g.Ready(t.Context()); err == nil {
			t.Error("the gateway is ready without a server")
		}
		up.Store(true)
		for range 2 { // those that have given up start again 15 s after the last failure
			time.Sleep(20 * time.Second)
			for _, p := range peers {
				p.post(request("1", "tools/list"))
			}
		}
		time.Sleep(20 * time.Second)
		for _, p := range peers {
			p.take()
			p.served("2", u.starts(), "tools/list")
		}
	})
}

// Messages that one client does not read must not delay those of another.
func TestSlowClientOfASharedSession(t *testing.T) {
	u := &server{handle: on("big", func(s *serverSession, m *jsonrpc.Message) {
		s.say(string(jsonrpc.NewResult(m.ID, []byte(`"`+strings.Repeat("x", 1<<20)+`"`))))
	})}
	inFakeTime(t, u, sharing, func(t *testing.T, g *gateway.Gateway) {
		slow := connectSlow(t, g, plain, 20*time.Second)
		fast := connect(t, g, plain)
		synctest.Wait()
		for i := range 50 {
			slow.post(request(fmt.Sprint(i), "big"))
			fast.served(fmt.Sprint(i), 1, "tools/list")
		}
		equal(t, "the slow client was closed for", slow.c.Reason(), "slow")
		fast.served("1", 1, "tools/list")
	})
}

// A client that disconnects during a request does not end the session.
func TestClientLeavesASharedSessionWhileItAsks(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{Sessions: gateway.SessionsShared, ConnectRate: -1}, func(t *testing.T, g *gateway.Gateway) {
		for range 100 {
			p := connectReady(t, g)
			var both sync.WaitGroup
			both.Go(func() {
				for i := 0; i < 100 && p.c.State() != connstate.Closed; i++ {
					p.post(request(strconv.Itoa(i), "hang"))
				}
			})
			both.Go(func() { p.c.Close("left") })
			both.Wait()
		}
		equal(t, "starts, want one: clients that left have ended the session of all", u.starts(), 1)
	})
}
