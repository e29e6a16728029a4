package multiplex_test

import (
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func pingAs(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }

// hears makes the server of the test get the gateway's pings, which it otherwise answers.
func hears(w *world) { w.conn.pings = true }

// endedNot expects the session to live.
func endedNot() step {
	return func(w *world) {
		w.Helper()
		ssetest.Want(w, "the end of the session", w.session.Err(), nil)
	}
}

// A server that was silent while it had a request, until that timed out, gets one ping. If
// it stays silent, the session ends, so that the server is replaced.
func TestHungServerIsGivenUp(t *testing.T) {
	const gaveUpA, gaveUpB = `fail "a": timeout, final (timeout)`, `fail "b": timeout, final (timeout)`
	runScenarios(t, []scenario{
		{name: "no answer to the ping", steps: []step{
			hears, forward(callA), sent(call("1")), after(60 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut), pingAs("2")),
			after(10*time.Second - 1), endedNot(), after(1), endedWith(multiplex.ErrHung),
		}},
		{name: "the answer clears it", steps: []step{
			hears, forward(callA), after(60 * time.Second), got(gaveUpA), discard, server(result("2")), after(time.Hour), endedNot(), sent(),
		}},
		{name: "so does any message", steps: []step{
			hears, forward(callA), after(60 * time.Second), got(gaveUpA), discard, server("not even JSON"), after(time.Hour), endedNot(), sent(),
		}},
		{name: "a server that works on one request after the other answers the ping last", steps: []step{
			hears, forward(callA), after(59 * time.Second), forward(callB), sent(call("1"), call("2")),
			after(time.Second), got(gaveUpA), sent(cancelled("1", timedOut), pingAs("3")),
			after(58 * time.Second), server(result("2"), result("3")), got(answer(`"b"`)), after(time.Hour), sent(), endedNot(),
		}},
		{name: "a slow call beside other answers causes no ping", steps: []step{
			hears, forward(callA, callB), sent(call("1"), call("2")), after(time.Second), server(result("2")), got(answer(`"b"`)),
			after(59 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut)),
		}},
		{name: "nor does a cancelled one, which need not be answered", steps: []step{
			hears, forward(callA, cancelOf(`"a"`)), after(2 * time.Second), got(`fail "a": cancelled, final (canceled)`),
			sent(call("1"), cancelOf("1")), after(time.Hour), sent(),
		}},
		{name: "nor does a server that waits for a task to end", steps: []step{
			hears, forward(`{"jsonrpc":"2.0","id":"r","method":"tasks/result","params":{"taskId":"x"}}`, callA), discard,
			after(60 * time.Second), got(gaveUpA), sent(cancelled("2", timedOut)), server(result("1")), got(answer(`"r"`)),
		}},
		{name: "a server that takes no ping", steps: []step{
			hears, forward(callA), sent(call("1")), sending(jsonrpc.ErrBusy), after(60 * time.Second), got(gaveUpA), endedWith(multiplex.ErrHung),
		}},
	})
}
