package statelessclient_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	askAll   = `{"elicitation":{},"sampling":{},"roots":{}}`
	elicit   = `{"jsonrpc":"2.0","id":"e%d","method":"elicitation/create","params":{"message":"%d","_meta":{"progressToken":1}}}`
	toolCall = `{"name":"t","arguments":{"a":1}}`
)

// asks makes a server whose prompts and tools ask n times at once, and answer with what
// they get. It does not say which call its requests belong to, like a server on stdio.
func (s *server) asks(n int) {
	var mu sync.Mutex
	calls := make(map[*conn]*jsonrpc.Message)
	s.serve = func(c *conn, m *jsonrpc.Message) {
		mu.Lock()
		calls[c] = m
		mu.Unlock()
		for i := range n {
			c.send(nil, fmt.Sprintf(elicit, i, i))
		}
	}
	s.responded = func(c *conn) {
		mu.Lock()
		m := calls[c]
		mu.Unlock()
		if got := c.received("response"); len(got) == n {
			c.answer(m, fmt.Sprintf(`{"got":%q}`, strings.Join(got, " ")))
		}
	}
}

// retry returns the request of the next round with these answers.
func retry(t *testing.T, r *response, a ask, answers string) ask {
	t.Helper()
	want(t, "result type", r.member("result", "resultType"), `"input_required"`)
	params := rawjson.SetMember(json.RawMessage(a.params), json.RawMessage(answers), "inputResponses")
	a.params = string(rawjson.SetMember(params, json.RawMessage(r.member("result", "requestState")), "requestState"))
	a.id = cmp.Or(a.id, "1") + "0"
	return a
}

func TestSeveralInputsAtOnce(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.server.asks(3)
		a := ask{method: "tools/call", params: toolCall, capabilities: askAll}
		r := f.do(t, a)
		for i := 1; i <= 3; i++ {
			want(t, "request", r.member("result", "inputRequests", fmt.Sprintf("elicitation-%d", i), "params"), fmt.Sprintf(`{"message":"%d"}`, i-1))
		}
		// The client leaves one out, and sends one that nobody wants.
		r = f.do(t, retry(t, r, a, `{"elicitation-1":{"action":"accept"},"elicitation-3":{"action":"decline"},"other":{}}`))
		want(t, "what is left", r.member("result", "inputRequests"), `{"elicitation-2":{"method":"elicitation/create","params":{"message":"1"}}}`)
		r = f.do(t, retry(t, r, a, `{"elicitation-2":{"action":"cancel"}}`))
		if got := r.member("result", "got"); !strings.Contains(got, "accept") || !strings.Contains(got, "decline") || !strings.Contains(got, "cancel") {
			t.Errorf("got %s", r.last())
		}
	})
}

// A state is good for the request that it was given out for, once, for a while.
func TestForeignStates(t *testing.T) {
	a := ask{method: "tools/call", params: toolCall, capabilities: askAll, principal: "ada"}
	for name, change := range map[string]func(next *ask, state string){
		"forged":    func(n *ask, state string) { n.params = strings.Replace(n.params, state, state[:len(state)-1]+"_", 1) },
		"principal": func(n *ask, state string) { n.principal = "eve" },
		"method":    func(n *ask, state string) { n.method = "prompts/get" },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, quiet, func(t *testing.T, f *fixture) {
				f.server.asks(1)
				first := f.do(t, a)
				good := retry(t, first, a, `{"elicitation-1":{"action":"accept"}}`)
				bad := good
				change(&bad, strings.Trim(first.member("result", "requestState"), `"`))
				r := f.do(t, bad)
				want(t, "status", r.Code, 400)
				want(t, "code", r.member("error", "code"), -32602)
				// The call is not harmed by that, and its state is used up once it is used.
				r = f.do(t, good)
				want(t, "result type", r.member("result", "resultType"), `"complete"`)
				r = f.do(t, good)
				want(t, "code of a used state", r.member("error", "code"), -32602)
			})
		})
	}
}

func TestHeldCallIsCancelledAfterATime(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.server.serve = func(c *conn, m *jsonrpc.Message) {
			c.send(nil, fmt.Sprintf(elicit, 0, 0))
		}
		a := ask{method: "tools/call", params: toolCall, capabilities: askAll}
		r := f.do(t, a)
		c := f.server.connections()[0]
		pause(5*time.Minute - time.Second)
		want(t, "cancellations", len(c.received("notifications/cancelled")), 0)
		pause(2 * time.Second)
		want(t, "cancellations", c.received("notifications/cancelled"),
			`[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"the client has not given its input in time"}}]`)
		want(t, "responses", c.received("response"), `[{"jsonrpc":"2.0","id":"e0","error":{"code":-32603,"message":"the call was cancelled"}}]`)
		r = f.do(t, retry(t, r, a, `{"elicitation-1":{}}`))
		want(t, "code", r.member("error", "code"), -32602)
	})
}

// Closing the response cancels the request, whatever it waits for.
func TestClosedResponseCancels(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.server.serve = func(c *conn, m *jsonrpc.Message) {}
		r := f.begin(t, ask{method: "prompts/get", params: `{"name":"p"}`})
		synctest.Wait()
		c := f.server.connections()[0]
		r.cancel()
		<-r.done
		want(t, "cancellations", c.received("notifications/cancelled"),
			`[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the client has closed the response"}}]`)
		want(t, "body", r.text(), "")
	})
}

// A request of the server goes to the call that it may belong to, or to none.
func TestServerRequestsThatNobodyMayAnswer(t *testing.T) {
	sample := `{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage","params":{}}`
	for name, tc := range map[string]struct {
		ask     ask
		related bool
		request string
		code    string
	}{
		"another method":       {ask{method: "prompts/list", capabilities: askAll}, true, sample, "-32601"},
		"nothing declared":     {ask{method: "prompts/get", params: `{"name":"p"}`}, true, sample, "-32021"},
		"something else":       {ask{method: "prompts/get", params: `{"name":"p"}`, capabilities: `{"roots":{}}`}, false, sample, "-32021"},
		"not related":          {ask{method: "prompts/list", capabilities: askAll}, false, sample, "-32601"},
		"no request for input": {ask{method: "prompts/get", params: `{"name":"p"}`, capabilities: askAll}, true, `{"jsonrpc":"2.0","id":"x","method":"other/thing"}`, "-32601"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, quiet, func(t *testing.T, f *fixture) {
				f.server.serve = func(c *conn, m *jsonrpc.Message) {
					related := m
					if !tc.related {
						related = nil
					}
					c.send(related, tc.request)
					c.answer(m, `{}`)
				}
				r := f.do(t, tc.ask)
				want(t, "result type", r.member("result", "resultType"), `"complete"`)
				got := f.server.connections()[0].received("response")
				if len(got) != 1 || !strings.Contains(got[0], `"id":"x","error":{"code":`+tc.code) {
					t.Errorf("the server got %q", got)
				}
			})
		})
	}
}

// A client that is gone when it is asked has cancelled the call. But it may close the TCP
// connection as soon as it has the state.
func TestClientThatLeavesWhenItIsAsked(t *testing.T) {
	for early, cancellations := range map[bool]int{true: 1, false: 0} {
		bubble(t, quiet, func(t *testing.T, f *fixture) {
			f.server.asks(1)
			a := ask{method: "tools/call", params: toolCall, capabilities: askAll}
			ctx, leave := context.WithCancel(t.Context())
			w := newResponse()
			f.post(hooked{w, func() error {
				leave()
				return map[bool]error{true: io.ErrClosedPipe}[early]
			}}, a.request(ctx), "")
			if !early {
				r := f.do(t, retry(t, w, a, `{"elicitation-1":{"action":"accept"}}`))
				want(t, "status", r.Code, 200)
			}
			want(t, "cancellations", len(f.server.connections()[0].received("notifications/cancelled")), cancellations)
		})
	}
}

// A server may answer although it asks, and take back what it asks.
func TestServerThatNoLongerAsks(t *testing.T) {
	for answered, responses := range map[bool]string{
		true:  `[{"jsonrpc":"2.0","id":"e0","error":{"code":-32603,"message":"the call is over"}}]`,
		false: `[]`,
	} {
		bubble(t, quiet, func(t *testing.T, f *fixture) {
			f.server.serve = func(c *conn, m *jsonrpc.Message) {
				c.send(nil, fmt.Sprintf(elicit, 0, 0))
				if answered {
					c.answer(m, `{}`)
					return
				}
				c.send(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"e0"}}`)
				time.AfterFunc(time.Second, func() { c.answer(m, `{}`) })
			}
			r := f.do(t, ask{method: "prompts/get", params: `{"name":"p"}`, capabilities: askAll})
			want(t, "result type", r.member("result", "resultType"), `"complete"`)
			want(t, "responses", f.server.connections()[0].received("response"), responses)
		})
	}
}

func TestServerThatNeverStopsAsking(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		next := func(c *conn) {
			n := len(c.received("response"))
			if n <= 10 {
				c.send(nil, fmt.Sprintf(elicit, n, n))
			}
		}
		f.server.serve = func(c *conn, _ *jsonrpc.Message) { next(c) }
		f.server.responded = next
		a := ask{method: "prompts/get", params: `{"name":"p"}`, capabilities: askAll}
		r, rounds := f.do(t, a), 0
		for r.member("error") == "" {
			rounds++
			r = f.do(t, retry(t, r, a, fmt.Sprintf(`{"elicitation-%d":{}}`, rounds)))
		}
		want(t, "rounds", rounds, 10)
		want(t, "reason", r.member("error", "data", "reason"), `"input_rounds"`)
		want(t, "cancellations", len(f.server.connections()[0].received("notifications/cancelled")), 1)
	})
}

// A client cannot make the gateway hold any number of calls.
func TestHeldCallsAreBounded(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.SetLimits(2, 8)
		f.server.serve = func(c *conn, m *jsonrpc.Message) {
			c.send(m, fmt.Sprintf(elicit, 0, 0))
			time.AfterFunc(time.Second, func() { c.answer(m, `{}`) }) // makes room for another call
		}
		a := ask{method: "prompts/get", params: `{"name":"p"}`, capabilities: askAll}
		for range 8 {
			want(t, "result type", f.do(t, a).member("result", "resultType"), `"input_required"`)
			pause(2 * time.Second)
		}
		want(t, "reason", f.do(t, a).member("error", "data", "reason"), `"input_busy"`)
	})
}

// A drain cancels the calls that are held, and those that ask later: the gateway would wait
// for them.
func TestDrainCancelsCallsThatAsk(t *testing.T) {
	for _, later := range []time.Duration{0, time.Second} {
		bubble(t, quiet, func(t *testing.T, f *fixture) {
			f.server.serve = func(c *conn, m *jsonrpc.Message) {
				time.AfterFunc(later, func() { c.send(m, fmt.Sprintf(elicit, 0, 0)) })
			}
			r := f.begin(t, ask{method: "prompts/get", params: `{"name":"p"}`, capabilities: askAll})
			pause(time.Second / 2)
			c := f.server.connections()[0]
			if _, err := c.Drain(); err != nil {
				t.Fatal(err)
			}
			pause(2 * time.Second)
			if later > 0 {
				want(t, "reason", r.member("error", "data", "reason"), `"draining"`)
			}
			want(t, "cancellations", len(c.received("notifications/cancelled")), 1)
			want(t, "held bytes", f.series(t, "mcp_sse_held_bytes"), 0)
		})
	}
}

// An answer that comes while the client is away is not lost.
func TestAnswerWaitsForTheClient(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.server.serve = func(c *conn, m *jsonrpc.Message) {
			c.send(m, fmt.Sprintf(elicit, 0, 0))
			time.AfterFunc(time.Second, func() {
				c.send(m, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
				c.answer(m, `{"done":true}`)
			})
		}
		a := ask{method: "prompts/get", params: `{"name":"p"}`, capabilities: askAll}
		r := f.do(t, a)
		pause(time.Minute)
		r = f.do(t, retry(t, r, a, `{"elicitation-1":{}}`))
		want(t, "messages", len(r.messages()), 2)
		want(t, "answer", r.member("result", "done"), true)
	})
}
