package gateway_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// withHold makes a gateway hold initialize back for the default time.
var withHold = gateway.Settings{AnnounceDelay: 100 * time.Millisecond}

// The time that an initialization took does not count the hold, which nobody but the client
// could have ended.
func TestHoldIsNoInitializationTime(t *testing.T) {
	u := &server{handle: on("initialize", late(20*time.Millisecond))}
	inFakeTime(t, u, withHold, func(t *testing.T, g *gateway.Gateway) {
		connect(t, g, connstate.Client{})
		time.Sleep(time.Second)
		equal(t, "seconds of initialization", metric(t, g, "mcp_sse_handshake_duration_seconds_sum"), 0.02)
	})
}

// The client's own initialize goes to the server unchanged, at once, and once; the
// server's answer is its answer.
func TestClientsOwnInitializeGoesToTheServer(t *testing.T) {
	const own = `{"roots":{"listChanged":true},"sampling":{},"elicitation":{},"experimental":{"x":{"n":1.50}}}`
	for name, test := range map[string]struct {
		dial func(context.Context, int) error
		warm int
	}{"at once": {}, "after a boot": {dial: slow(3 * time.Second)}, "warm": {warm: 1}} {
		t.Run(name, func(t *testing.T) {
			u, opts := &server{dial: test.dial}, withHold
			opts.Warm = test.warm
			inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
				g.Start()
				synctest.Wait()
				p := connect(t, g, connstate.Client{})
				time.Sleep(5 * time.Millisecond)
				p.post(initialize("0", "2025-06-18", own), initialized, request("1", "tools/list"))
				if test.dial != nil {
					p.want()
					time.Sleep(3 * time.Second)
				}
				p.want(asVersion("0", "2025-06-18"), answered("1", 1, "tools/list"))
				s := u.session(t, 1)
				equal(t, "the session got", s.methods(), []string{"initialize", "notifications/initialized", "tools/list"})
				want := `{"protocolVersion":"2025-06-18","capabilities":` + own + `,"clientInfo":{"name":"peer","version":"0"}}`
				equal(t, "params", string(s.message(t, "initialize").Params()), want)
				time.Sleep(time.Minute)
				p.want() // no announcement
				equal(t, "starts, and one ahead", u.starts(), 1+test.warm)
			})
		})
	}
}

// Requests that the gateway answers itself do not need the server: a client that
// begins with them may still send its own initialize.
func TestPingAndDiscoverDoNotEndTheHold(t *testing.T) {
	u := &server{}
	withClient(t, u, withHold, func(t *testing.T, p *peer) {
		p.post(request("1", "server/discover"), request("2", "ping"))
		p.want("1 error -32601", "2 {}")
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		u.session(t, 1).wantMethods(t)
		p.post(initialize("3", "2025-11-25", `{"roots":{}}`))
		p.want("3 " + serverResult)
		wantText(t, "text", string(u.session(t, 1).message(t, "initialize").Params()), "roots")
		equal(t, "starts", u.starts(), 1)
	})
}

// A server in process whose initialize is held back does not block other starts.
func TestHeldStartsAreNotCounted(t *testing.T) {
	u := &server{}
	opts := gateway.Settings{AnnounceDelay: time.Second}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		for range 16 {
			connect(t, g, plain)
		}
		p := connect(t, g, plain)
		p.deliver(request("1", "tools/list"))
		equal(t, "starts", u.starts(), 17)
		if p.wantState(connstate.Ready); t.Failed() {
			t.Log("a request waits for the hold of other clients")
		}
	})
}

// A client's own initialize gets an answer within its timeout, whatever it waits for:
// here other starts.
func TestOwnInitializeIsBounded(t *testing.T) {
	u := &server{dial: slow(40 * time.Second)}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		for range 3 * 16 {
			connect(t, g, plain)
		}
		synctest.Wait()
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", emptyDeclared))
		time.Sleep(time.Second)
		p.post(initialize("1", "2025-11-25", emptyDeclared))
		time.Sleep(49*time.Second - time.Nanosecond)
		p.want()
		time.Sleep(time.Nanosecond)
		p.want("0 initialization_error request_processing attempt 1")
		time.Sleep(time.Second)
		p.want("1 initialization_error request_processing attempt 1")
		time.Sleep(3 * time.Minute)
		p.post(initialize("0", "2025-11-25", emptyDeclared))
		p.want("0 " + serverResult) // the start went on
	})
}

// A client that initializes with more capabilities at the very end of a start, with the
// server's answer or after it, gets a fresh session.
func TestInitializeAtTheEndOfAStart(t *testing.T) {
	for _, moment := range []string{"initialize", "notifications/initialized"} {
		connected := make(chan *peer, 1)
		u := &server{handle: inSession(1, on(moment, func(s *serverSession, m *jsonrpc.Message) {
			s.answer(m)
			(<-connected).post(initialize("0", "2025-11-25", `{"roots":{}}`))
		}))}
		withClient(t, u, withHold, func(t *testing.T, p *peer) {
			connected <- p
			time.Sleep(time.Second)
			p.post(request("2", "tools/list"))
			p.want("0 "+serverResult, answered("2", 2, "tools/list"))
			wantText(t, "text", string(u.session(t, 2).message(t, "initialize").Params()), "roots")
		})
	}
}

// The refusal of a client's own initialize is its answer, byte for byte, at once.
// Other requests get a session with the synthetic initialize, and the refusal does
// not affect readiness.
func TestRefusalOfTheClientsOwnInitialize(t *testing.T) {
	const refusal = `{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["1.50"],"n":9007199254740993}}`
	u := &server{handle: saying("roots", on("initialize", func(s *serverSession, m *jsonrpc.Message) {
		s.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":` + refusal + `}`)
	}))}
	inFakeTime(t, u, withHold, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.deliver(initialize(`"own"`, "2025-11-25", `{"roots":{}}`), request("2", "tools/list"))
		p.mu.Lock()
		if want := `{"jsonrpc":"2.0","id":"own","error":` + refusal + `}`; len(p.got) != 1 || string(p.got[0].Data) != want {
			t.Errorf("got %v, want %s", p.got, want)
		}
		p.got = nil
		p.mu.Unlock()
		equal(t, "error", g.Ready(t.Context()), nil)
		time.Sleep(3 * time.Second)
		p.want(answered("2", u.starts(), "tools/list"))
	})
}

// The client's initialize waits for the next start when the server ends before it, or
// answers with an internal error, which may be temporary: transports make one of an HTTP
// failure.
func TestInitializeOutlivesAStart(t *testing.T) {
	for _, last := range []func(*serverSession, *jsonrpc.Message){
		dies,
		fails(-32603),
	} {
		u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
			if s.n == 1 {
				last(s, m)
			}
			return s.n == 1
		}}
		withClient(t, u, withHold, func(t *testing.T, p *peer) {
			p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
			p.want()
			time.Sleep(2 * time.Second)
			p.want("0 " + serverResult)
			wantText(t, "text", string(u.session(t, 2).message(t, "initialize").Params()), "roots")
		})
	}
}

// A client with refused params does not get fresh sessions again and again, and a
// refusal answers only its own initialize.
func TestRefusedClientCostsOneFreshSession(t *testing.T) {
	u := &server{handle: saying("bad", on("initialize", fails(-32602)))}
	withClient(t, u, withHold, func(t *testing.T, p *peer) {
		p.post(initialize("0", "2025-11-25", `{"bad":{}}`))
		p.want("0 error -32602")
		time.Sleep(3 * time.Second)
		starts := u.starts()
		for range 10 {
			p.post(initialize("1", "2025-11-25", `{"bad":{}}`))
			p.want("1 " + serverResult)
			time.Sleep(15 * time.Second)
		}
		equal(t, "starts", u.starts(), starts)
	})
}

// booting makes the sessions of a server answer no earlier than d after their start.
func booting(d time.Duration) *server {
	var started time.Time
	return &server{
		dial: func(context.Context, int) error { started = time.Now(); return nil },
		handle: func(s *serverSession, m *jsonrpc.Message) bool {
			time.AfterFunc(time.Until(started.Add(d)), func() { s.answer(m) })
			return true
		},
	}
}

// A process that was just spawned waits for the client's own initialize for 300 ms, which
// costs nothing, as it boots meanwhile. Nothing goes out before that. A client that
// declares more later gets a session of its own.
func TestInitializeIsTakenWhileTheServerBoots(t *testing.T) {
	process := withHold
	process.Boots = true
	const hold = 300 * time.Millisecond
	for after, starts := range map[time.Duration]int{50 * time.Millisecond: 1, hold - 1: 1, 4 * time.Second: 2} {
		u := booting(5 * time.Second)
		withClient(t, u, process, func(t *testing.T, p *peer) {
			time.Sleep(after)
			p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
			time.Sleep(5*time.Second + time.Duration(starts-1)*after - after)
			p.want("0 " + serverResult)
			u.session(t, starts).wantMethods(t, "initialize", "notifications/initialized")
			wantText(t, "text", string(u.session(t, starts).message(t, "initialize").Params()), "roots")
			equal(t, "starts", u.starts(), starts)
		})
	}
	for name, test := range map[string]struct {
		opts gateway.Settings
		hold time.Duration
	}{"spawned": {process, hold}, "other": {withHold, hold / 3}} {
		t.Run("a silent client of a server that is "+name, func(t *testing.T) {
			u := booting(5 * time.Second)
			withClient(t, u, test.opts, func(t *testing.T, p *peer) {
				time.Sleep(test.hold - 1)
				u.session(t, 1).wantMethods(t)
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				u.session(t, 1).wantMethods(t, "initialize")
				time.Sleep(5*time.Second - test.hold)
				p.wantState(connstate.Ready)
			})
		})
	}
	u := booting(5 * time.Second)
	withClient(t, u, process, func(t *testing.T, p *peer) { // a request needs the server
		p.deliver(request("1", "tools/list"))
		u.session(t, 1).wantMethods(t, "initialize")
	})
}

// A warm process has booted: it waits for the client's own initialize no longer than any
// other server.
func TestWarmProcessIsNotWaitedFor(t *testing.T) {
	warm := withHold
	warm.Boots, warm.Warm = true, 1
	u := &server{}
	inFakeTime(t, u, warm, func(t *testing.T, g *gateway.Gateway) {
		g.Start()
		time.Sleep(time.Second)
		u.session(t, 1).wantMethods(t)
		p := connect(t, g, plain)
		time.Sleep(100 * time.Millisecond)
		p.wantState(connstate.Ready)
		u.session(t, 1).wantMethods(t, "initialize", "notifications/initialized")
	})
}

// start-timeout begins with the process: a server that answers nothing is counted, announced
// and known to have failed when it is over, whatever the gateway waited for before.
func TestStartTimeoutMeansWhatItSays(t *testing.T) {
	for name, opts := range map[string]gateway.Settings{
		"spawned": {Boots: true}, "warm": {Boots: true, Options: gateway.Options{Warm: 1}}, "other": {},
	} {
		t.Run(name, func(t *testing.T) {
			opts.StartTimeout, opts.AnnounceDelay = time.Second, withHold.AnnounceDelay
			u := &server{handle: func(*serverSession, *jsonrpc.Message) bool { return true }} // silent
			inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
				g.Start()
				time.Sleep(time.Minute)
				p := connect(t, g, plain)
				time.Sleep(time.Second - 1)
				p.want()
				time.Sleep(time.Nanosecond)
				p.wantState(connstate.Failed)
				equal(t, "failures", p.c.Snapshot().Failures, map[string]int{"request_processing": 1})
				equal(t, "counted", metric(t, g, "mcp_sse_handshakes_total"), 1)
				u.session(t, 1).wantMethods(t, "initialize")
			})
		})
	}
}

// Warm servers that refuse a client are not all spent on it.
func TestRefusalCostsOneWarmServer(t *testing.T) {
	u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "initialize" {
			fails(-32602)(s, m)
		}
		return true
	}}
	opts := gateway.Settings{Options: gateway.Options{Warm: 3}, MaxHandshakeAttempts: 1}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		g.Start()
		time.Sleep(time.Minute)
		connect(t, g, plain).wantState(connstate.Failed)
		if n := u.starts(); n != 4 { // one for the one that is spent
			t.Errorf("%d starts, want 4", n)
		}
	})
}

// A session that goes on after a restart has the version that its client negotiated, and
// no capabilities.
func TestVersionOfAClientThatGoesOn(t *testing.T) {
	var params string
	u := &server{handle: func(_ *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "initialize" {
			params = string(m.Params())
		}
		return false
	}}
	withVersion := plain
	withVersion.Version = "2025-03-26"
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		connect(t, g, withVersion).wantState(connstate.Ready)
		if !strings.HasPrefix(params, `{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"mcp-sse"`) {
			t.Errorf("the server got %s", params)
		}
	})
}

// A server that refuses the version, instead of answering its own, is asked for an older one,
// and the next session asks for that at once.
func TestServerThatRefusesTheVersion(t *testing.T) {
	for _, requested := range []string{"2025-11-25", "2099-01-01"} { // the second one nobody knows
		var mu sync.Mutex
		var asked []string
		u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
			if m.Method != "initialize" {
				return false
			}
			version, _ := m.Param("protocolVersion").Text()
			mu.Lock()
			asked = append(asked, version)
			mu.Unlock()
			refuses := version > "2025-03-26"
			if refuses {
				s.say(string(jsonrpc.NewError(m.ID, jsonrpc.Errorf(-32000, "Bad Request: Unsupported protocol version (supported versions: 2025-03-26, 2024-11-05)"))))
			}
			return refuses
		}}
		inFakeTime(t, u, withHold, func(t *testing.T, g *gateway.Gateway) {
			for range 2 {
				p := connect(t, g, plain)
				p.post(initialize("0", requested, emptyDeclared))
				p.wantState(connstate.Ready)
			}
			mu.Lock()
			defer mu.Unlock()
			equal(t, "versions", asked, []string{requested, "2025-03-26", "2025-03-26"})
			equal(t, "starts", u.starts(), 2)
		})
	}
}

// If the server refuses the synthetic initialize, the next session has the client's own
// params, also if they declare no more.
func TestClientsParamsFollowARefusal(t *testing.T) {
	u := &server{handle: saying("mcp-sse", on("initialize", func(s *serverSession, m *jsonrpc.Message) {
		time.AfterFunc(time.Second, func() { fails(-32600)(s, m) })
	}))}
	withClient(t, u, withHold, func(t *testing.T, p *peer) {
		time.Sleep(500 * time.Millisecond)
		p.post(initialize("0", "2025-11-25", emptyDeclared))
		time.Sleep(2 * time.Second)
		p.want("0 " + serverResult)
		equal(t, "starts", u.starts(), 2)
	})
}
