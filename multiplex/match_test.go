package multiplex_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

const (
	noID   = `{"jsonrpc":"2.0","result":{}}`
	nullID = `{"jsonrpc":"2.0","id":null,"result":{}}`

	nullError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"m"}}`
)

// own has the gateway itself call the server; what it got is written down as
// the first client's.
func own(method string, timeout time.Duration) step {
	return func(w *world) {
		go func() { // ends with the answer, the timeout or the session
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			m, err := w.session.Call(ctx, method, nil)
			if err != nil {
				w.clients[0].note("own %s failed: %v", method, err)
				return
			}
			w.clients[0].note("own %s: %s", method, m.Raw())
		}()
	}
}

// A response that does not say which request it answers is matched only if it can
// answer a single one.
func TestResponsesWithoutID(t *testing.T) {
	serial := multiplex.Options{MaxInFlight: 1, RequestTimeout: 10 * time.Second}
	runScenarios(t, []scenario{
		{name: "in order for the clients of a shared session", opts: multiplex.Options{MaxInFlight: 1, Shared: true}, clients: 2, steps: []step{
			from(0, callA), from(1, callA), sent(call("1")), server(nullID), at(0, answer(`"a"`)), at(1), sent(call("2")),
			server(nullID), at(0), at(1, answer(`"a"`)), matched("fifo", 2),
		}},
		{name: "on a session of one client whenever one request is out", steps: []step{
			forward(callA), sent(call("1")), server(nullID), got(answer(`"a"`)),
			forward(callB), sent(call("2")), server(result("2")), got(answer(`"b"`)), // the server has named one
			forward(callC), sent(call("3")), server(noID), got(`answer "c": {"id":"c","jsonrpc":"2.0","result":{}}`), matched("fifo", 2),
		}},
		{name: "fails all at once when several requests are out, and the next go one at a time", clients: 3, opts: multiplex.Options{Shared: true}, steps: []step{
			from(0, callA), from(1, callB), sent(call("1"), call("2")), server(nullID), at(0, unusable("a")), at(1, unusable("b")), serialized(1),
			from(2, callA, callB), sent(), server(noID), at(2), dropped(metrics.DroppedUnknownResponse, 2), // the other of the two
			sent(call("3")), server(nullID), at(2, answer(`"a"`)), sent(call("4")), server(nullID), at(2, answer(`"b"`)),
		}},
		{name: "fails the rest when a server that names its answers has named all others", clients: 3, opts: multiplex.Options{Shared: true}, steps: []step{
			from(0, callA), sent(call("1")), server(result("1")), at(0, answer(`"a"`)),
			from(0, callA), from(1, callB), from(2, callC), sent(call("2"), call("3"), call("4")), server(nullID), at(0), at(1), at(2), serialized(1),
			from(0, callB), sent(), server(result("4"), result("2")), at(0, answer(`"a"`)), at(2, answer(`"c"`)), at(1, unusable("b")),
			sent(call("5")), server(result("5")), at(0, answer(`"b"`)),
		}},
		{name: "fails the one request on a shared session whose server has named another answer", clients: 2, opts: multiplex.Options{Shared: true}, steps: []step{
			from(0, callA), sent(call("1")), server(result("1")), at(0, answer(`"a"`)),
			from(1, callB), sent(call("2")), server(nullID), at(1, unusable("b")), from(1, callC), sent(call("3")), server(result("2"), result("3")),
			at(1, answer(`"c"`)),
		}},
		{name: "fails the one request while one that was given up may be answered", opts: multiplex.Options{RequestTimeout: 10 * time.Second}, steps: []step{
			forward(callA), after(10 * time.Second), got(`fail "a": timeout, final (timeout)`), discard,
			forward(callB), sent(call("3")), server(nullID), got(unusable("b")), server(result("1"), result("3")),
			forward(callC), sent(call("4")), server(nullID), got(answer(`"c"`)),
		}},
		{name: "holds the next requests until one that was given up is answered", opts: multiplex.Options{RequestTimeout: 20 * time.Second}, steps: []step{
			forward(callA), sent(call("1")), server(nullID), got(answer(`"a"`)),
			forward(callB), sent(call("2")), after(20 * time.Second), got(`fail "b": timeout, final (timeout)`), sent(cancelled("2", timedOut)),
			forward(callC), sent(), after(9 * time.Second), server(nullID), got(), sent(call("3")), server(nullID), got(answer(`"c"`)),
		}},
		{name: "ends the session if one that was given up is not answered", opts: multiplex.Options{RequestTimeout: 20 * time.Second}, steps: []step{
			forward(callA), sent(call("1")), server(nullID), got(answer(`"a"`)),
			forward(callB), sent(call("2")), after(20 * time.Second), got(`fail "b": timeout, final (timeout)`), sent(cancelled("2", timedOut)),
			forward(callC), sent(), after(10 * time.Second), got("lost " + callC),
		}},
		{name: "ends the session if a request of the gateway is not answered", clients: 2, opts: multiplex.Options{Shared: true, RequestTimeout: 20 * time.Second}, steps: []step{
			from(0, subscribe("1", "f:/a")), sent(subscribe("1", "f:/a")), server(nullID), at(0, `answer 1: {"jsonrpc":"2.0","id":1,"result":{}}`),
			leaves(0), sent(unsubscribe("2", "f:/a")), after(19 * time.Second), from(1, callA), sent(), after(time.Second), sent(cancelled("2", timedOut)),
			after(10 * time.Second), at(1, "lost "+callA),
		}},
		{name: "a result may be about a notification where the server names its answers", steps: []step{
			forward(callA), sent(call("1")), server(result("1")), got(answer(`"a"`)),
			forward(`{"jsonrpc":"2.0","method":"notifications/x"}`, callB), sent(`{"jsonrpc":"2.0","method":"notifications/x"}`, call("2")),
			server(nullID), got(), server(result("2")), got(answer(`"b"`)), serialized(0),
		}},
		{name: "an error of a server that could not read a message says nothing of its others", steps: []step{
			forward(callA, callB), sent(call("1"), call("2")), server(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`), got(), serialized(0),
			server(result("1"), result("2")), got(answer(`"a"`), answer(`"b"`)),
		}},
		{name: "an error after a notification may be about that, until a later request is answered", steps: []step{
			forward(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, callA),
			sent(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, call("1")),
			server(nullError), got(), server(result("1")), got(answer(`"a"`)),
			forward(callB), sent(call("2")), server(nullError), got(`answer "b": {"jsonrpc":"2.0","id":"b","error":{"code":-32601,"message":"m"}} (-32601)`),
		}},
		{name: "an error is believed when serialized", opts: serial, steps: []step{
			forward(`{"jsonrpc":"2.0","method":"notifications/x"}`, callA), sent(`{"jsonrpc":"2.0","method":"notifications/x"}`, call("1")),
			server(nullError), got(`answer "a": {"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"m"}} (-32601)`),
		}},
		{name: "believed again once that answer has come", opts: serial, steps: []step{
			forward(callA), after(10 * time.Second), got(`fail "a": timeout, final (timeout)`),
			forward(callB), sent(call("1"), cancelled("1", timedOut), call("3")),
			server(result("1"), nullID), got(answer(`"b"`)),
		}},
	})
}

func unusable(id string) string {
	return `fail "` + id + `": invalid_response, final (invalid_response)`
}

// serialized expects the server to be known to need one request at a time, or not.
func serialized(want int) step {
	return func(w *world) {
		w.Helper()
		ssetest.Want(w, "serialized", ssetest.Sum(w, w.metrics, "mcp_sse_server_serialized"), want)
	}
}

// What one session has learned of its server, the others know.
func TestSessionsOfAServerWithoutIDsAreSerialized(t *testing.T) {
	known := &multiplex.Habits{}
	runScenarios(t, []scenario{
		{name: "one learns", opts: multiplex.Options{Habits: known}, steps: []step{
			forward(callA), sent(call("1")), server(nullID), got(answer(`"a"`)), serialized(1),
		}},
		{name: "another knows", opts: multiplex.Options{Habits: known, MaxInFlight: 5}, steps: []step{
			forward(callA, callB), sent(call("1")), server(nullID), got(answer(`"a"`)), sent(call("2")), server(noID),
			got(`answer "b": {"id":"b","jsonrpc":"2.0","result":{}}`),
		}},
	})
}

// A string with the number in it can only mean the request with that number.
func TestIDsAsStrings(t *testing.T) {
	text := func(id string) string { return `{"jsonrpc":"2.0","id":"` + id + `","result":{}}` }
	runScenarios(t, []scenario{
		{name: "matched", opts: multiplex.Options{Shared: true}, clients: 2, steps: []step{
			from(0, callA), from(1, callB), sent(call("1"), call("2")), server(text("2"), text("1"), text("1")), at(0, answer(`"a"`)), at(1, answer(`"b"`)),
			matched("string", 2), matched("orphan", 1),
		}},
		{name: "not in another form", steps: []step{
			forward(callA), sent(call("1")), server(text("01"), text("1.0"), text(" 1"), text("+1")), got(), server(result("1")), got(answer(`"a"`)),
		}},
	})
}

// An id that the session has not given out belongs to the only request, if there can be
// no other. One that it has given out is a late or a second answer.
func TestUnknownIDs(t *testing.T) {
	serial := multiplex.Options{MaxInFlight: 1}
	runScenarios(t, []scenario{
		{name: "matched when serialized", opts: serial, steps: []step{
			forward(callA, callB), sent(call("1")), server(result("77")), got(answer(`"a"`)), sent(call("2")), server(result(`"x"`)), got(answer(`"b"`)),
			matched("fifo", 2),
		}},
		{name: "not matched when it is that of a request before, or the server has named an answer", opts: serial, steps: []step{
			forward(callA), sent(call("1")), server(result("1")), got(answer(`"a"`)),
			forward(callB), sent(call("2")), server(result("1"), result("77"), result("1")), got(), server(result("2")), got(answer(`"b"`)),
		}},
		{name: "not matched otherwise", steps: []step{
			forward(callA), sent(call("1")), server(result("77"), result("0")), got(), dropped(metrics.DroppedUnknownResponse, 2), server(result("1")), got(answer(`"a"`)),
		}},
		{name: "not matched on a shared session whose server has named an answer", opts: multiplex.Options{MaxInFlight: 1, Shared: true}, clients: 2, steps: []step{
			from(0, callA), sent(call("1")), server(result("1")), at(0, answer(`"a"`)),
			from(1, callB), sent(call("2")), server(result("77")), at(1), server(result("2")), at(1, answer(`"b"`)),
		}},
	})
}

func TestUnusableMessagesOfTheServer(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "response that is both names its request", steps: []step{
			forward(callA, callB), sent(call("1"), call("2")),
			server(`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}`),
			got(`fail "a": invalid_response, final (invalid_response)`),
			server(result("2")), got(answer(`"b"`)),
		}},
		{name: "invalid request of the server is no answer", steps: []step{
			forward(callA), sent(call("1")),
			server(`{"jsonrpc":"2.0","id":1,"method":"roots/list","params":5}`, `{"jsonrpc":"2.0","id":1,"method":5}`, `{"id":1,"method":"ping"}`),
			got(), dropped(metrics.DroppedInvalidMessage, 3),
			server(result("1")), got(answer(`"a"`)),
		}},
	})
}

// A message over the limit ends the session. If only one request is out, it was the
// answer to that one, which must not be repeated.
func TestOverlongMessageEndsTheSession(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "one request", steps: []step{
			forward(listA), discard, fault(jsonrpc.ErrTooLong), got(`fail "a": invalid_response, final (invalid_response)`),
			dropped(metrics.DroppedTooLong, 1), endedWith(jsonrpc.ErrTooLong),
		}},
		{name: "several", steps: []step{
			forward(callA, callB), discard, fault(jsonrpc.ErrTooLong),
			got(`fail "a": session_lost, final (session_lost)`, `fail "b": session_lost, final (session_lost)`), endedWith(jsonrpc.ErrTooLong),
		}},
		{name: "none", steps: []step{fault(jsonrpc.ErrTooLong), got(), endedWith(jsonrpc.ErrTooLong)}},
	})
}

func TestSessionEnd(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "the server's end answers all, and says what may be repeated", steps: []step{
			forward(callB, listA), sent(call("1"), sentPrefix+"2*"), fault(io.EOF),
			got(`fail "b": session_lost, final (session_lost)`, "lost "+listA),
			forward(callC), got(`not taken "c": the session is over: the session with the server was lost: EOF`), sent(),
			endedWith(io.EOF),
		}},
		{name: "calls of our own", steps: []step{
			own("tools/list", time.Minute), sent(sentPrefix + "1*"), fault(io.EOF),
			got("own tools/list failed: the session with the server was lost: EOF"),
			own("tools/list", time.Minute), got("own tools/list failed: the session with the server was lost: EOF"),
		}},
		{name: "every read-only method may be repeated", steps: []step{
			forward(
				`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`, `{"jsonrpc":"2.0","id":2,"method":"prompts/get"}`,
				`{"jsonrpc":"2.0","id":3,"method":"resources/list"}`, `{"jsonrpc":"2.0","id":4,"method":"resources/read"}`,
				`{"jsonrpc":"2.0","id":5,"method":"resources/templates/list"}`, `{"jsonrpc":"2.0","id":6,"method":"completion/complete"}`,
				`{"jsonrpc":"2.0","id":7,"method":"resources/subscribe"}`, `{"jsonrpc":"2.0","id":8,"method":"vendor/x"}`),
			func(w *world) { w.conn.take() }, fault(errors.New("exit status 1")),
			got(`lost {"jsonrpc":"2.0","id":1,"method":"prompts/list"}`, `lost {"jsonrpc":"2.0","id":2,"method":"prompts/get"}`,
				`lost {"jsonrpc":"2.0","id":3,"method":"resources/list"}`, `lost {"jsonrpc":"2.0","id":4,"method":"resources/read"}`,
				`lost {"jsonrpc":"2.0","id":5,"method":"resources/templates/list"}`, `lost {"jsonrpc":"2.0","id":6,"method":"completion/complete"}`,
				`fail 7: session_lost, final (session_lost)`, `fail 8: session_lost, final (session_lost)`),
		}},
	})
}

// endedWith expects the session to be over for that reason.
func endedWith(want error) step {
	return func(w *world) {
		w.Helper()
		ssetest.WantError(w, "Err()", w.session.Err(), want)
		if len(w.ended) != 1 || !errors.Is(w.ended[0], want) {
			w.Errorf("OnClose was told %v, want %v once", w.ended, want)
		}
		select {
		case <-w.session.Done():
		default:
			w.Error("Done is not closed")
		}
	}
}
