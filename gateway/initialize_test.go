package gateway_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// asVersion returns the stored result as a client of that version gets it.
func asVersion(id, version string) string {
	return id + ` {"protocolVersion":"` + version + `","capabilities":{},"serverInfo":{"name":"played","version":"1.0"}}`
}

func TestInitializeIsAnsweredFromTheStoredResult(t *testing.T) {
	u := &server{}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		p.wantState(connstate.Ready)
		p.post(initialize(`"i"`, "2024-11-05", emptyDeclared), initialized)
		p.want(asVersion(`"i"`, "2024-11-05"))
		p.post(initialize("9007199254740993", "2030-01-01", emptyDeclared), initialized)
		p.want(asVersion("9007199254740993", "2025-11-25")) // again, with a version that nobody knows
		p.served("1", 1, "tools/list")
		p.post(initialize("2", "2025-03-26", `{"roots":{}}`)) // the session is used: it stays
		p.want(asVersion("2", "2025-03-26"))
		u.session(t, 1).wantMethods(t, "initialize", "notifications/initialized", "tools/list")
	})
}

func TestMoreCapabilitiesOpenAFreshSession(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connectReady(t, g)
		const declared = `{"roots":{"listChanged":true},"experimental":{"x":{"n":1.50}}}`
		own := initialize("0", "2025-06-18", declared)
		p.post(own, initialized, request("1", "tools/list"))
		p.want(asVersion("0", "2025-06-18"), answered("1", 2, "tools/list"))
		if !u.session(t, 1).over() || u.open() != 1 {
			t.Error("the session that was not used is still open")
		}
		got := string(u.session(t, 2).message(t, "initialize").Params())
		equal(t, "params", got, `{"protocolVersion":"2025-06-18","capabilities":`+declared+`,"clientInfo":{"name":"peer","version":"0"}}`)
		u.session(t, 2).wantMethods(t, "initialize", "notifications/initialized", "tools/list")
		p.post(initialize("2", "2025-06-18", `{"sampling":{}}`))
		p.want(asVersion("2", "2025-06-18"))
		equal(t, "starts: a client gets one session of its own", u.starts(), 2)
		equal(t, "mcp_sse_session_restarts_total", metric(t, g, "mcp_sse_session_restarts_total"), 0)
	})
}

func TestMoreCapabilitiesDuringTheHandshake(t *testing.T) {
	u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool { return s.n == 1 }} // the first session says nothing
	withClient(t, u, gateway.Settings{MaxHandshakeAttempts: 1}, func(t *testing.T, p *peer) {
		synctest.Wait()
		p.post(initialize("0", "2025-06-18", `{"sampling":{}}`))
		p.want(asVersion("0", "2025-06-18"))
		if !u.session(t, 1).over() {
			t.Error("the first session is still open")
		}
	})
}

// Servers send roots/list as soon as they are initialized: the client gets it after
// the answer to its initialize.
func TestServerRequestsRightAfterTheHandshake(t *testing.T) {
	u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "notifications/initialized" && s.n == 2 {
			s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}`)
			s.say(request("1", "roots/list"))
			s.say(request("2", "sampling/createMessage"))
			<-s.server.settle // until the reader has had them
		}
		return false
	}}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		u.settle = make(chan struct{})
		p := connectReady(t, g)
		p.deliver(initialize("0", "2025-11-25", `{"roots":{}}`))
		close(u.settle)
		p.want("0 "+serverResult, "notifications/message", "request roots/list")
		id := p.lastRequest(t)
		p.deliver(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"roots":[]}}`)
		s := u.session(t, 2)
		s.wantMethods(t, "initialize", "notifications/initialized", "", "")
		s.wantSent(t, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"the client does not serve sampling/createMessage"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
	})
}

// After its cancellation the client hears nothing more of a request: no answer, neither the server's nor
// the gateway's, and no progress. It has forgotten the id, and some close the connection at an unknown one.
func TestNothingIsHeardOfACancelledRequest(t *testing.T) {
	cancel := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
	}
	withToken := `{"jsonrpc":"2.0","id":2,"method":"hang","params":{"_meta":{"progressToken":"t"}}}`
	for _, sessions := range []gateway.Sessions{gateway.SessionsPerConnection, gateway.SessionsShared} {
		for _, transport := range []connstate.Transport{connstate.TransportSSE, connstate.TransportStdio} {
			u := &server{dial: slow(time.Second)}
			inFakeTime(t, u, gateway.Options{Sessions: sessions}, func(t *testing.T, g *gateway.Gateway) {
				client := plain
				client.Transport = transport
				p := connect(t, g, client)
				p.post(request("1", "tools/list"), withToken, request("4", "hang"), cancel("1"), cancel("3"), initialize("0", "2025-11-25", emptyDeclared), cancel("0"))
				time.Sleep(time.Second)
				p.want("0 " + serverResult) // initialize must not be cancelled
				p.deliver(cancel("2"), cancel("4"))
				p.deliver(request("4", "tools/list")) // the id is free at once
				p.want(answered("4", 1, "tools/list"))
				s := u.session(t, 1)
				equal(t, "cancellations", s.count("notifications/cancelled"), 2)
				s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}`)
				s.say(`{"jsonrpc":"2.0","id":2,"result":{}}`)
				time.Sleep(3 * time.Second)
				p.want()
				equal(t, "requests in flight", p.c.InFlight(), 0)
				p.deliver(request("2", "tools/list")) // the id is free
				p.want(answered("2", 1, "tools/list"))
			})
		}
	}
}

// Over Streamable HTTP the POST of a cancelled request has to end: with an error.
func TestThePOSTOfACancelledRequestEnds(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		client := plain
		client.Transport = connstate.TransportStreamable
		p := connect(t, g, client)
		p.wantState(connstate.Ready)
		p.deliver(request("2", "hang"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		time.Sleep(2 * time.Second)
		p.want("2 cancelled retryable=*")
	})
}

func TestPlainTransport(t *testing.T) {
	u := &server{}
	withClient(t, u, gateway.Options{NoAutoInitialize: true}, func(t *testing.T, p *peer) {
		p.wantState(connstate.Ready)
		p.post(initialize("0", "2024-11-05", `{"roots":{}}`), initialized, request("1", "tools/list"))
		p.want("0 "+serverResult, answered("1", 1, "tools/list"))
		s := u.session(t, 1)
		s.wantMethods(t, "initialize", "notifications/initialized", "tools/list")
		s.say(request("5", "roots/list"))
		p.want("request roots/list")

		time.Sleep(11 * time.Second)
		s.die()
		p.wantState(connstate.Ready)
		u.session(t, 2).wantMethods(t, "initialize", "notifications/initialized")
		equal(t, "restarted with", string(u.session(t, 2).message(t, "initialize").Params()), string(s.message(t, "initialize").Params()))
		p.served("1", 2, "tools/list")
	})
}

// Without the synthetic initialize there is no announcement and no answer to an
// initialize that the client did not send.
func TestPlainTransportAnnouncesNothing(t *testing.T) {
	u := &server{dial: slowFailure}
	inFakeTime(t, u, gateway.Settings{Options: gateway.Options{NoAutoInitialize: true}, MaxHandshakeAttempts: 2}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage})
		p.post(initialize("0", "2024-11-05", emptyDeclared))
		time.Sleep(5*time.Second - time.Millisecond) // a pause is at most a second, a start takes one
		p.want("0 initialization_error request_creation attempt 2")
		time.Sleep(time.Minute)
		p.want()
	})
}

// Messages of a server before its session is in use are bounded.
func TestEarlyMessagesOfTheServerAreBounded(t *testing.T) {
	line := `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"` + strings.Repeat("x", 40<<10) + `"}}`
	u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "initialize" {
			s.say(line)
			s.say(line) // over 64 KiB with the first
		}
		return false
	}}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		p.want("notifications/message")
		p.served("1", 1, "tools/list")
	})
}

func TestRepeatedInitializeWaitsForTheStartUnderWay(t *testing.T) {
	u := &server{dial: secondFails(3 * time.Second)}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		p.wantState(connstate.Ready)
		p.post(initialize("1", "2025-06-18", `{"roots":{}}`))
		p.want()
		time.Sleep(2 * time.Second) // a first pause is under 1 s: the next start is under way
		p.wantState(connstate.Initializing)
		p.post(initialize("2", "2025-06-18", `{"roots":{}}`))
		time.Sleep(3 * time.Second)
		p.want("1 {*", "2 {*")
		equal(t, "starts", u.starts(), 3)
	})
}

// A session that replaces a lost one declares the client's capabilities, also after a
// failed start.
func TestOwnCapabilitiesOutliveALoss(t *testing.T) {
	u := &server{dial: func(ctx context.Context, n int) error {
		if n == 3 {
			return errNoServer
		}
		return slow(time.Duration(n/4)*time.Second)(ctx, n)
	}}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		p.wantState(connstate.Ready)
		p.post(initialize("1", "2025-06-18", `{"roots":{}}`), request("2", "tools/list"))
		p.want("1 *", "2 *")
		u.session(t, 2).die()
		p.wantState(connstate.Failed)
		p.post(initialize("3", "2025-06-18", `{"roots":{}}`))
		time.Sleep(5 * time.Second)
		p.want("3 *")
		wantText(t, "text", string(u.session(t, 3).message(t, "initialize").Params()), "roots")
	})
}

// The next session declares what the client has declared last. If that is too long to be kept, the session declares
// what the gateway does, and not what the client has declared before.
func TestLongInitializeTakesThePlaceOfTheOneBefore(t *testing.T) {
	long := `{"experimental":{"x":{"text":"` + strings.Repeat("x", 64<<10) + `"}}}`
	for name, wait := range map[string]time.Duration{"during a start": 0, "in the pause after it": time.Second} {
		t.Run(name, func(t *testing.T) {
			u := &server{dial: func(ctx context.Context, n int) error {
				if err := slow(time.Second)(ctx, n); n > 1 {
					return err
				}
				return errNoServer
			}}
			withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
				p.deliver(initialize("0", "2025-06-18", `{"roots":{}}`))
				time.Sleep(wait)
				synctest.Wait()
				p.deliver(initialize("1", "2025-06-18", long))
				time.Sleep(5 * time.Second)
				p.want(asVersion("0", "2025-06-18"), asVersion("1", "2025-06-18"))
				got := string(u.session(t, 1).message(t, "initialize").Params())
				if strings.Contains(got, "roots") {
					t.Errorf("the server got what the client had declared before: %s", got)
				}
				u.session(t, 1).wantMethods(t, "initialize", "notifications/initialized")
			})
		})
	}
}

// A client gets only server requests whose capability it declared: package internal/mcp
// knows which.
func TestServersAskOnlyForWhatTheClientDeclares(t *testing.T) {
	const byURL = `"elicitation/create","params":{"mode":"url","message":"m","url":"https://a.example"}`
	for _, tt := range []struct {
		declared, request string
		want              bool
	}{
		{"", `"roots/list"`, false}, // no initialize yet
		{`{}`, `"roots/list"`, false},
		{`{"roots":{}}`, `"roots/list"`, true},
		{`{"elicitation":{}}`, byURL, false},
	} {
		u := &server{}
		withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
			p.wantState(connstate.Ready)
			if tt.declared != "" {
				p.post(initialize("0", "2025-11-25", tt.declared), initialized)
				p.want("0 *")
			}
			s := u.session(t, u.starts())
			s.say(`{"jsonrpc":"2.0","id":"s","method":` + tt.request + `}`)
			synctest.Wait()
			equal(t, tt.declared+", "+tt.request+": passed on", len(p.got) == 1, tt.want)
			if !tt.want && !strings.Contains(s.last(), `"id":"s","error":{"code":-32601`) {
				t.Errorf("%s, %s: the server got %s, want error -32601", tt.declared, tt.request, s.last())
			}
		})
	}
}

// The gateway sends no list_changed for a list if the server did not declare it.
func TestListChangedOfSharedSessions(t *testing.T) {
	u := &server{capabilities: `{"tools":{"listChanged":true},"prompts":{}}`}
	inFakeTime(t, u, sharing, func(t *testing.T, g *gateway.Gateway) {
		p, q := connect(t, g, plain), connect(t, g, plain)
		synctest.Wait()
		for _, kind := range []string{"tools", "prompts", "resources"} {
			u.session(t, 1).say(`{"jsonrpc":"2.0","method":"notifications/` + kind + `/list_changed"}`)
		}
		p.want("notifications/tools/list_changed")
		q.want("notifications/tools/list_changed")
		equal(t, "dropped messages, want two for each client", metric(t, g, "mcp_sse_messages_dropped_total"), 4)
	})
}
