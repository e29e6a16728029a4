package gateway_test

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// diesOf returns the handler of a server whose first sessions die of a method.
func diesOf(method string, sessions int) func(*serverSession, *jsonrpc.Message) bool {
	return func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method != method || s.n > sessions {
			return false
		}
		s.die()
		return true
	}
}

// Requests that change nothing are sent once more on the next session, calls are not.
func TestRequestsThatAreRepeated(t *testing.T) {
	for _, tt := range []struct {
		method string
		deaths int
		want   string
	}{
		{"tools/list", 1, answered("1", 2, "tools/list")},
		{"resources/list", 1, answered("1", 2, "resources/list")},
		{"resources/templates/list", 1, answered("1", 2, "resources/templates/list")},
		{"prompts/list", 1, answered("1", 2, "prompts/list")},
		{"resources/read", 1, answered("1", 2, "resources/read")},
		{"prompts/get", 1, answered("1", 2, "prompts/get")},
		{"completion/complete", 1, answered("1", 2, "completion/complete")},
		{"tools/list", 99, "1 session_lost retryable=true"},
		{"tools/call", 1, "1 session_lost retryable=false"},
	} {
		u := &server{handle: diesOf(tt.method, tt.deaths)}
		inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
			p := connect(t, g, plain)
			p.post(request("1", tt.method))
			time.Sleep(5 * time.Second)
			p.want(tt.want)
			if n := metric(t, g, "mcp_sse_requests_repeated_total"); (n == 1) != (tt.method != "tools/call") {
				t.Errorf("%s: %g requests repeated", tt.method, n)
			}
			p.post(request("1", "x")) // the id may be used again
			p.want(answered("1", u.starts(), "x"))
		})
	}
}

// If the server learns who its clients are, the tools of one are not those of another.
func TestAnnotationsOfAnotherClient(t *testing.T) {
	for want, passed := range map[string]*gateway.PassRequest{answered("1", 3, "tools/call"): nil, "1 session_lost retryable=false": {}} {
		u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
			if m.Method == "tools/list" {
				s.say(string(jsonrpc.NewResult(m.ID, []byte(`{"tools":[{"name":"t","annotations":{"readOnlyHint":true}}]}`))))
				return true
			}
			return diesOf("tools/call", 2)(s, m)
		}}
		inFakeTime(t, u, gateway.Options{PassRequest: passed}, func(t *testing.T, g *gateway.Gateway) {
			connect(t, g, plain).post(request("0", "tools/list"))
			synctest.Wait()
			p := connect(t, g, plain)
			p.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
			time.Sleep(2 * time.Second)
			p.want(want)
		})
	}
}

// Of such a server only its sessions learn: nothing else fails for that.
func TestNothingIsKnownOfAServerThatKnowsItsClients(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{PassRequest: &gateway.PassRequest{}}, func(t *testing.T, g *gateway.Gateway) {
		srv := pipetest.Serve(g, nil, nil)
		defer srv.Stop()
		p := connectStreamable(t, g, srv, func(int) int { return 0 })
		defer p.leave()
		p.post(request("1", "tools/call"))
		synctest.Wait()
		if got := p.received(); len(got) != 1 || describe(t, got[0]) != answered("1", 1, "tools/call") {
			t.Errorf("got %v", got)
		}
		if code, body := ask(g.Admin(), "/connections"); code != http.StatusOK || strings.Contains(body, `"tools"`) {
			t.Errorf("/connections: %d %s", code, body)
		}
	})
}

// A request that its client cancels while it waits for its repeat is over.
func TestRepeatedRequestCanBeCancelled(t *testing.T) {
	u := &server{handle: diesOf("tools/list", 1)}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		synctest.Wait()
		u.dial = slow(time.Second)
		p.deliver(request("1", "tools/list"))
		p.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		time.Sleep(5 * time.Second)
		p.want()
		equal(t, "requests in flight", p.c.InFlight(), 0)
	})
}

// Requests during the loss of a session find the gate closed, or a session that does
// not take them: each is repeated, whatever the moment.
func TestRequestsDuringALossAreRepeated(t *testing.T) {
	for _, sessions := range []gateway.Sessions{gateway.SessionsPerConnection, gateway.SessionsShared} {
		t.Run(string(sessions), func(t *testing.T) {
			u := &server{}
			withClient(t, u, gateway.Options{Sessions: sessions}, func(t *testing.T, p *peer) {
				for round := range 60 {
					time.Sleep(time.Minute)
					var wg sync.WaitGroup
					for client := range 4 {
						wg.Go(func() {
							for i := range 10 {
								p.post(request(strconv.Itoa(1000*round+100*client+i), "tools/list"))
							}
						})
					}
					u.session(t, u.starts()).die()
					wg.Wait()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				results, lost := 0, 0
				for _, e := range p.got {
					switch {
					case bytes.Contains(e.Data, []byte(`"session_lost"`)):
						lost++
					case bytes.Contains(e.Data, []byte(`"method":"tools/list"`)):
						results++
					}
				}
				if results != 2400 || lost > 0 {
					t.Errorf("%d requests got results and %d session_lost, want 2400 and none", results, lost)
				}
			})
		})
	}
}

// A failed first start after a loss does not fail the repeated requests: a remote
// server needs a moment to be back.
func TestRepeatedRequestsOutliveAFailedStart(t *testing.T) {
	u := &server{handle: diesOf("tools/list", 1), dial: failingFrom(2, 2)}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		time.Sleep(proven)
		p.deliver(request("1", "tools/list"))
		p.post(request("2", "ping"))
		p.want("2 {}")
		time.Sleep(5 * time.Second)
		p.want(answered("1", 3, "tools/list"))
	})
}
