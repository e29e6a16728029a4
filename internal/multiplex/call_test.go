package multiplex_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
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

// A request that the gateway sends in a client's name counts as the client's own: a new session knows which clients
// have subscribed, and which level each wants.
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
