package multiplex_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// callFor has the gateway call in the name of a client; what it got is written
// down as that client's.
func callFor(client int, method, params string, timeout time.Duration) step {
	return func(w *world) {
		go func() { // ends with the answer, the timeout, the client or the session
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			m, err := w.callers[client].Call(ctx, method, json.RawMessage(params))
			if err != nil {
				w.clients[client].note("call failed: %v", err)
				return
			}
			w.clients[client].note("call: %s", m.Raw())
		}()
	}
}

// What is asked in a client's name counts as its own: a new session knows who has
// subscribed, and which level each wants.
func TestCallInTheNameOfAClient(t *testing.T) {
	const ( // the id is ours: of the wire, or 0 when the server was not asked
		ok   = `call: {"jsonrpc":"2.0","id":1,"result":{}}`
		here = `call: {"jsonrpc":"2.0","id":2,"result":{}}`
	)
	updated := notification("notifications/resources/updated", `{"uri":"f:/a"}`)
	runScenarios(t, []scenario{
		{name: "subscribes it", opts: shared, clients: 2, steps: []step{
			callFor(0, "resources/subscribe", `{"uri":"f:/a"}`, time.Minute), sent(subscribe("1", "f:/a")),
			callFor(1, "resources/subscribe", `{"uri":"f:/a"}`, time.Minute), sent(), server(result("1")), at(0, ok), at(1, here),
			server(updated), at(0, delivery(updated)), at(1, delivery(updated)), leaves(0), sent(), leaves(1), sent(unsubscribe("3", "f:/a")),
		}},
		{name: "sets its log level", opts: shared, clients: 2, steps: []step{
			callFor(0, "logging/setLevel", `{"level":"error"}`, time.Minute), sent(setLevel("1", "error")), server(result("1")), at(0, ok),
			callFor(1, "logging/setLevel", `{"level":"alert"}`, time.Minute), sent(), at(1, here),
			callFor(1, "logging/setLevel", `{"level":"loud"}`, time.Minute), at(1, "call failed: params.level is not a log level (code -32602)"),
		}},
		{name: "waits for its turn, and no longer than it is told", opts: multiplex.Options{MaxInFlight: 1}, steps: []step{
			forward(callA), callFor(0, "x", `{}`, time.Second), sent(call("1")), after(time.Second), got("call failed: context deadline exceeded"),
			server(result("1")), got(answer(`"a"`)), sent(),
		}},
		{name: "ends with the client", opts: shared, steps: []step{
			callFor(0, "x", `{}`, time.Minute), discard, leaves(0), sent(cancelled("1", "the client has left")),
			got("call failed: the session is over for a client that has left"),
			callFor(0, "x", `{}`, time.Minute), got("call failed: the session is over for a client that has left"),
		}},
	})
}

// meddler calls the session back from inside each of its methods.
type meddler struct {
	session *multiplex.Session
	caller  *caller
	request *jsonrpc.Message
}

func (c *meddler) meddle() {
	_ = c.session.Err()
	_ = c.caller.Forward(c.request)
	attach(c.session, &fakeClient{}, "one more", "").Detach()
}

func (c *meddler) Answer(jsonrpc.ID, []byte, string)       { c.meddle() }
func (c *meddler) Fail(jsonrpc.ID, *jsonrpc.Error, string) { _ = c.session.Err() }
func (c *meddler) Lost(*jsonrpc.Message, *jsonrpc.Error)   { c.meddle() }
func (c *meddler) Deliver(string, jsonrpc.ID, []byte)      { c.meddle() }
func (c *meddler) Serves(*jsonrpc.Message) bool            { c.meddle(); return true }

// touchyConn needs the session's lock inside each Send.
type touchyConn struct {
	*fakeConn
	session *multiplex.Session
}

func (c *touchyConn) Send(msg []byte) error {
	if c.session != nil {
		_ = c.session.Err()
	}
	return c.fakeConn.Send(msg)
}

// A lock held while a client is called or a message sent would be a deadlock here,
// which synctest reports.
func TestNoLockIsHeldOutside(t *testing.T) {
	for _, opts := range []multiplex.Options{
		{RequestTimeout: time.Second}, {Shared: true, MaxInFlight: 1, MaxWaiting: 1, RequestTimeout: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn := &touchyConn{fakeConn: newFakeConn()}
			s := multiplex.New(conn, opts)
			conn.session = s
			c := &meddler{session: s, request: parse(t, tokenCall("7"))}
			c.caller = attach(s, c, "meddler", "ann")
			for _, m := range []string{callA, tokenCall("7"), subscribe("8", "f:/a"), setLevel("9", "debug"), listA, cancelOf(`"a"`)} {
				_ = c.caller.Forward(parse(t, m)) // some have an id that is in flight
			}
			for _, m := range []string{
				progress("2", "1"), result("1"), roots, cancelOf("7"), result("3"), logged("error", ""), taskStatus("k", "working"),
				notification("notifications/resources/updated", `{"uri":"f:/a"}`), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, "no JSON",
			} {
				conn.in <- incoming{data: []byte(m)}
				synctest.Wait()
			}
			time.Sleep(time.Minute)
			c.caller.Detach()
			s.Close(errTestOver)
			<-s.Done()
		})
	}
}
