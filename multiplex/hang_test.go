package multiplex_test

import (
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`

// counted expects the value of a counter without labels.
func counted(name string, want int) step {
	return func(w *world) {
		w.Helper()
		if n := plainCount(w, w.metrics, name); n != want {
			w.Errorf("%s is %d, want %d", name, n, want)
		}
	}
}

// A server is only given up when it has been silent with requests in flight, and
// then, with nothing to do, misses two pings.
func TestHang(t *testing.T) {
	opts := multiplex.Options{RequestTimeout: 60 * time.Second, HangTimeout: 30 * time.Second}
	const gaveUpA = `fail "a": timeout, final (timeout)`
	runScenarios(t, []scenario{
		{name: "a silent server that misses two pings is given up", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(60 * time.Second), got(gaveUpA),
			sent(cancelled("1", timedOut), ping), counted("mcp_sse_hang_suspected_total", 1),
			after(5 * time.Second), sent(`{"jsonrpc":"2.0","id":3,"method":"ping"}`),
			after(5*time.Second - 1), endedNot(), after(1), endedWith(multiplex.ErrHung),
			counted("mcp_sse_hang_ended_total", 1), counted("mcp_sse_hang_cleared_total", 0),
		}},
		{name: "one missed ping does not end it", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(60 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut), ping),
			after(5 * time.Second), sent(`{"jsonrpc":"2.0","id":3,"method":"ping"}`), server(result("3")),
			counted("mcp_sse_hang_cleared_total", 1), after(time.Hour), endedNot(), sent(),
		}},
		{name: "misses count in a row only", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(60 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut), ping),
			after(5 * time.Second), sent(`{"jsonrpc":"2.0","id":3,"method":"ping"}`), server(result("3")),
			forward(callB), sent(call("4")), after(60 * time.Second), got(`fail "b": timeout, final (timeout)`),
			sent(cancelled("4", timedOut), `{"jsonrpc":"2.0","id":5,"method":"ping"}`), after(5 * time.Second), endedNot(),
			sent(`{"jsonrpc":"2.0","id":6,"method":"ping"}`), server(result("6")),
		}},
		{name: "a slow call causes no ping", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(59 * time.Second), server(result("1")), got(answer(`"a"`)),
			after(time.Hour), sent(), counted("mcp_sse_hang_suspected_total", 0),
		}},
		{name: "a slow call beside other answers neither", opts: opts, steps: []step{
			forward(callA), after(31 * time.Second), forward(callB), sent(call("1"), call("2")), server(result("2")), got(answer(`"b"`)),
			after(29 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut)), counted("mcp_sse_hang_suspected_total", 0),
			after(time.Hour), sent(),
		}},
		{name: "any message shows that it lives", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(31 * time.Second), server("not even JSON"), after(29 * time.Second),
			got(gaveUpA), sent(cancelled("1", timedOut)), counted("mcp_sse_hang_suspected_total", 0),
		}},
		{name: "any message clears it, the ping unanswered", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(60 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut), ping),
			forward(callB), sent(), server("not even JSON"), sent(call("3")), counted("mcp_sse_hang_cleared_total", 1),
			after(10 * time.Second), endedNot(), sent(), server(result("3"), result("2")), got(answer(`"b"`)), after(time.Hour), sent(),
		}},
		{name: "silence adds up over requests that are given up earlier", opts: multiplex.Options{RequestTimeout: 20 * time.Second, HangTimeout: 30 * time.Second}, steps: []step{
			forward(callA), sent(call("1")), after(20 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut)),
			after(time.Hour), forward(callB), sent(call("2")), after(20 * time.Second), got(`fail "b": timeout, final (timeout)`),
			sent(cancelled("2", timedOut), `{"jsonrpc":"2.0","id":3,"method":"ping"}`), server(result("3")), counted("mcp_sse_hang_cleared_total", 1),
			forward(callC), after(20 * time.Second), got(`fail "c": timeout, final (timeout)`), sent(call("4"), cancelled("4", timedOut)),
		}},
		{name: "a ping that cannot be sent is one that is missed", opts: opts, steps: []step{
			forward(callA), sent(call("1")), sending(jsonrpc.ErrClosed), after(60 * time.Second), got(gaveUpA), sent(),
			after(10*time.Second - 1), endedNot(), after(1), endedWith(multiplex.ErrHung),
		}},
		{name: "silence without requests is none", opts: opts, steps: []step{
			after(time.Hour), forward(callA, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`),
			after(2 * time.Second), got(`fail "a": cancelled, final (canceled)`),
			sent(call("1"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`),
			counted("mcp_sse_hang_suspected_total", 0),
		}},
		{name: "a cancelled request that is not answered counts", opts: opts, steps: []step{
			forward(callA), after(30 * time.Second), forward(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`),
			after(2 * time.Second), got(`fail "a": cancelled, final (canceled)`),
			sent(call("1"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, ping), server(result("2")),
		}},
		{name: "never a ping while calls run, and new ones wait meanwhile", opts: opts, steps: []step{
			forward(callA), after(40 * time.Second), forward(callB), sent(call("1"), call("2")),
			after(20 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut)),
			forward(callC), after(39 * time.Second), sent(), after(time.Second),
			got(`fail "b": timeout, final (timeout)`), sent(cancelled("2", timedOut), `{"jsonrpc":"2.0","id":4,"method":"ping"}`),
			server(result("4")), sent(call("3")), server(result("3")), got(answer(`"c"`)),
		}},
		{name: "what waits is sent when it speaks", opts: opts, steps: []step{
			forward(callA), after(40 * time.Second), forward(callB), sent(call("1"), call("2")),
			after(20 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut)),
			forward(callC), sent(), server(result("2")), got(answer(`"b"`)), sent(call("3")), server(result("3")), got(answer(`"c"`)),
			after(time.Hour), sent(),
		}},
		{name: "what waits is handed back when it is given up", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(60 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut), ping),
			forward(callB), after(10 * time.Second), sent(`{"jsonrpc":"2.0","id":4,"method":"ping"}`), got("lost " + callB),
		}},
		{name: "what waits has its own time", opts: multiplex.Options{RequestTimeout: 3 * time.Second, HangTimeout: time.Second}, steps: []step{
			forward(callA), sent(call("1")), after(3 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut), ping),
			forward(callB), after(3 * time.Second), got(`fail "b": timeout, retryable (timeout)`), sent(),
			server(result("2")), sent(),
		}},
		{name: "a task's result may take its time, and holds up nobody", opts: opts, steps: []step{
			forward(`{"jsonrpc":"2.0","id":"r","method":"tasks/result","params":{"taskId":"x"}}`, callA),
			func(w *world) { w.conn.take() }, after(60 * time.Second), got(gaveUpA), sent(cancelled("2", timedOut)),
			forward(callB), sent(call("3")), after(time.Minute), got(`fail "b": timeout, final (timeout)`), sent(cancelled("3", timedOut)),
			server(result("1")), got(answer(`"r"`)), after(time.Hour), sent(),
		}},
		{name: "a server that does not read has missed its ping", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(time.Minute - 1), sending(jsonrpc.ErrBusy), after(1), got(gaveUpA),
			after(10*time.Second - 1), endedNot(), after(1), endedWith(multiplex.ErrHung),
		}},
		{name: "not by default", steps: []step{
			forward(callA), sent(call("1")), after(60 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut)),
			after(time.Hour), sent(), endedNot(),
		}},
	})
}

// endedNot expects the session to live.
func endedNot() step {
	return func(w *world) {
		w.Helper()
		if err := w.session.Err(); err != nil {
			w.Errorf("the session has ended: %v", err)
		}
	}
}
