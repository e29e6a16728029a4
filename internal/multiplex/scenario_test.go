package multiplex_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

var errTestOver = errors.New("the test is over")

const (
	callA = `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x"}}`
	callB = `{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"x"}}`
	callC = `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"x"}}`
	listA = `{"jsonrpc":"2.0","id":"a","method":"tools/list"}`

	sentPrefix = `{"jsonrpc":"2.0","id":`
)

// call is callA as the server sees it.
func call(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"x"}}`
}

func result(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

func answer(id string) string { return "answer " + id + ": " + result(id) }

func cancelled(id, reason string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"` + reason + `"}}`
}

const timedOut = "the gateway's request timeout"

type scenario struct {
	name    string
	opts    multiplex.Options
	clients int // 0: one
	// attributed: the Conn knows the related request of a message.
	attributed bool
	// formed: the Conn knows in which form a message came.
	formed bool
	steps  []step
}

func (s scenario) world(t *testing.T) *world {
	w := &world{TB: t, conn: newFakeConn(), metrics: prometheus.NewRegistry()}
	switch {
	case s.attributed:
		w.open(&attributedConn{fakeConn: w.conn}, s.opts)
	case s.formed:
		w.open(formedConn{w.conn}, s.opts)
	default:
		return newWorld(t, s.opts, max(1, s.clients))
	}
	for i := range max(1, s.clients) {
		w.attach(fmt.Sprintf("user-%d", i))
	}
	return w
}

func runScenarios(t *testing.T, scenarios []scenario) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := s.world(t)
				play(w, s.steps)
				w.finish()
			})
		})
	}
}

func TestRequests(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "id is ours on the wire and the client's on the way back", steps: []step{
			forward(callA), sent(call("1")),
			server(result("1")), got(answer(`"a"`)),
		}},
		{name: "notification passes as it is", steps: []step{
			forward(`{"jsonrpc":"2.0", "method":"notifications/x", "params":{"n":9007199254740993}}`),
			sent(`{"jsonrpc":"2.0", "method":"notifications/x", "params":{"n":9007199254740993}}`),
		}},
		{name: "notification of the server passes as it is", steps: []step{
			server(`{"method":"notifications/message","jsonrpc":"2.0","params":{"data":1e400},"x":1}`),
			got(`deliver {"method":"notifications/message","jsonrpc":"2.0","params":{"data":1e400},"x":1}`),
		}},
		{name: "errors are told to the metrics by code, tool errors as such", steps: []step{
			forward(callA, callB, callC), sent(call("1"), call("2"), call("3")),
			server(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}`, `{"jsonrpc":"2.0","id":2,"result":{"isError":true}}`,
				`{"jsonrpc":"2.0","id":3,"result":{"deep":{"isError":true}}}`),
			got(`answer "a": {"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"m"}} (-32602)`,
				`answer "b": {"jsonrpc":"2.0","id":"b","result":{"isError":true}} (tool_error)`,
				`answer "c": {"jsonrpc":"2.0","id":"c","result":{"deep":{"isError":true}}}`),
		}},
		{name: "busy server", steps: []step{
			sending(jsonrpc.ErrBusy), forward(callA), got(`fail "a": server_busy, retryable (busy)`),
			sending(nil), forward(callA), sent(call("2")), server(result("2")), got(answer(`"a"`)),
		}},
		{name: "send fails because the server ended", steps: []step{
			sending(io.ErrClosedPipe), forward(callA), got(`not taken "a": the session is over: io: read/write on closed pipe`),
		}},
	})
}

func TestTimeouts(t *testing.T) {
	opts := multiplex.Options{RequestTimeout: 10 * time.Second}
	runScenarios(t, []scenario{
		{name: "default is 60 s", steps: []step{
			forward(callA), sent(call("1")), after(60*time.Second - 1), got(), after(1),
			sent(cancelled("1", timedOut)), got(`fail "a": timeout, final (timeout)`),
		}},
		{name: "answers one request and touches no other", opts: opts, steps: []step{
			forward(callA), after(time.Second), forward(callB), sent(call("1"), call("2")),
			after(9 * time.Second), sent(cancelled("1", timedOut)), got(`fail "a": timeout, final (timeout)`),
			server(result("2")), got(answer(`"b"`)),
		}},
		{name: "late answer is dropped", opts: opts, steps: []step{
			forward(callA), sent(call("1")), server(result("1")), discard, forward(callA), sent(call("2")), after(10 * time.Second),
			sent(cancelled("2", timedOut)), got(`fail "a": timeout, final (timeout)`),
			server(result("2")), dropped(metrics.DroppedUnknownResponse, 1),
			forward(callA), sent(call("3")), server(result("2")), got(), server(result("3")), got(answer(`"a"`)),
			dropped(metrics.DroppedUnknownResponse, 2),
		}},
		{name: "initialize is not cancelled", opts: opts, steps: []step{
			forward(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`), sent(sentPrefix + "*"),
			after(10 * time.Second), got(`fail 0: timeout, final (timeout)`),
		}},
		{name: "a request that was never sent is not cancelled", opts: multiplex.Options{RequestTimeout: 10 * time.Second, MaxRequestTimeout: time.Minute, MaxInFlight: 1}, steps: []step{
			forward(tokenCall("1"), callB), sent(tokenSent("1")), after(5 * time.Second), server(progress("1", "1")), discard,
			after(5 * time.Second), got(`fail "b": timeout, retryable (timeout)`), server(result("1")), got(answer(`"a"`)), sent(),
		}},
	})
}

func TestCancellation(t *testing.T) {
	const cancelA = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"r","requestId":"a","_meta":{"x":1.0}}}`
	runScenarios(t, []scenario{
		{name: "names the request as the server knows it", steps: []step{
			forward(callB, callA, cancelA),
			sent(call("1"), call("2"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"r","requestId":2,"_meta":{"x":1.0}}}`),
			server(result("2")), got(answer(`"a"`)), // the server was faster
			server(result("1")), got(answer(`"b"`)),
		}},
		{name: "answered by the gateway when the server says nothing", steps: []step{
			forward(callA, cancelA), sent(call("1"), `{"jsonrpc":"2.0","method":"notifications/cancelled"*`),
			after(2*time.Second - 1), got(), after(1), got(`fail "a": cancelled, final (canceled)`),
			server(result("1")), dropped(metrics.DroppedUnknownResponse, 1),
			after(time.Minute),
		}},
		{name: "of a waiting request is answered at once", opts: multiplex.Options{MaxInFlight: 1}, steps: []step{
			forward(callB, callA, callC, cancelA), sent(call("1")), got(`fail "a": cancelled, retryable (canceled)`),
			server(result("1")), got(answer(`"b"`)), sent(call("3")), server(result("3")), got(answer(`"c"`)),
		}},
		{name: "of nothing is swallowed", steps: []step{
			forward(cancelA, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`),
			dropped(metrics.DroppedUnknownRequest, 3),
		}},
		{name: "of initialize is not passed on", steps: []step{
			forward(`{"jsonrpc":"2.0","id":"a","method":"initialize"}`), sent(sentPrefix + "*"),
			forward(cancelA), sent(), dropped(metrics.DroppedUnknownRequest, 1), after(10 * time.Second),
			server(result("1")), got(answer(`"a"`)),
		}},
	})
}

func TestMaxInFlight(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "notifications do not wait", opts: multiplex.Options{MaxInFlight: 1}, steps: []step{
			forward(callA, callB, `{"jsonrpc":"2.0","method":"notifications/x"}`),
			sent(call("1"), `{"jsonrpc":"2.0","method":"notifications/x"}`),
			server(result("1")), got(answer(`"a"`)), sent(call("2")), server(result("2")), got(answer(`"b"`)),
		}},
		{name: "a busy server frees the place", opts: multiplex.Options{MaxInFlight: 1}, steps: []step{
			forward(callA, callB, callC), sent(call("1")), sending(jsonrpc.ErrBusy), server(result("1")),
			gotInAnyOrder(answer(`"a"`), `fail "b": server_busy, retryable (busy)`, `fail "c": server_busy, retryable (busy)`),
			sending(nil), forward(callA), sent(call("4")), server(result("4")), got(answer(`"a"`)),
		}},
	})
}
