package multiplex_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
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

// A response that does not name its request goes to the oldest one.
func TestResponsesWithoutID(t *testing.T) {
	opts := multiplex.Options{RequestTimeout: 10 * time.Second}
	runScenarios(t, []scenario{
		{name: "one request at a time from the first such answer on", opts: multiplex.Options{MaxInFlight: 5}, steps: []step{
			forward(callA), sent(call("1")), server(nullResult), got(answered(`"a"`)), serialized(1),
			forward(callB, callC), sent(call("2")), server(noIDResult), got(answered(`"b"`)), sent(call("3")), server(nullResult), got(answered(`"c"`)), matched("fifo", 3),
		}},
		{name: "in order, if several requests are out at the first such answer", steps: []step{
			forward(callA, callB), sent(call("1"), call("2")), server(nullResult), got(answered(`"a"`)), forward(callC), sent(),
			server(nullResult), got(answered(`"b"`)), sent(call("3")), server(nullResult), got(answered(`"c"`)),
		}},
		{name: "also of a server that names only its first answer", steps: []step{
			forward(callA), sent(call("1")), server(result("1")), got(answer(`"a"`)), forward(notice, callB), sent(notice, call("2")),
			server(nullResult), got(answered(`"b"`)), forward(callC), sent(call("3")), server(nullError), got(errored(`"c"`)),
		}},
		{name: "in order for the clients of a shared session", opts: shared, clients: 2, steps: []step{
			from(0, callA), sent(call("1")), server(nullResult), at(0, answered(`"a"`)), from(0, callA), from(1, callA), sent(call("2")),
			server(nullResult), at(0, answered(`"a"`)), at(1), sent(call("3")), server(nullResult), at(1, answered(`"a"`)),
		}},
		{name: "an empty result is that of a request which has one", steps: []step{
			forward(notice, setLevel("8", "info")), sent(notice, setLevel("1", "info")), server(noID), got(`answer 8: {"id":8,"jsonrpc":"2.0","result":{}}`),
			forward(callA), sent(call("2")), server(noID), got(), server(nullResult), got(answered(`"a"`)), // that of the notification came first
		}},
		{name: "an error without an id after a notification is about that", steps: []step{
			forward(notice, callA), sent(notice, call("1")), server(nullError), got(), dropped(metrics.DroppedUnknownResponse, 1), server(result("1")), got(answer(`"a"`)),
			forward(callB), sent(call("2")), server(nullError), got(errored(`"b"`)),
		}},
		{name: "so is an empty result, once for each notification", steps: []step{
			forward(notice, notice, callA), sent(notice, notice, call("1")), server(noID, nullID), got(), serialized(0), server(noID), got(`answer "a": {"id":"a","jsonrpc":"2.0","result":{}}`),
		}},
		{name: "also while no request is out", steps: []step{
			forward(notice), sent(notice), server(nullError), forward(callA), sent(call("1")), server(nullError), got(errored(`"a"`)),
		}},
		{name: "the answer to a request before the notification says nothing of that", steps: []step{
			forward(callA, notice, callB), sent(call("1"), notice, call("2")), server(result("1")), got(answer(`"a"`)), server(nullError), got(),
			server(result("2")), got(answer(`"b"`)), serialized(0),
		}},
		{name: "a server that could not read a message means the only one", steps: []step{
			forward(callA), sent(call("1")), server(unread), got(`answer "a": {"jsonrpc":"2.0","id":"a","error":{"code":-32700,"message":"m"}} (-32700)`), serialized(0),
			forward(callA, callB), sent(call("2"), call("3")), server(unread), got(), serialized(0), server(result("2"), result("3")), got(answer(`"a"`), answer(`"b"`)),
		}},
		{name: "one that means any of several may be the answer to one of them", steps: []step{
			forward(callA, callB), sent(call("1"), call("2")), server(unread, nullResult),
			got(`fail "a": session_lost, final (session_lost)`, `fail "b": session_lost, final (session_lost)`), ended,
		}},
		{name: "a request that was sent after the notification is, whenever it came", steps: []step{
			forward(callA), sent(call("1")), server(nullResult), got(answered(`"a"`)), forward(callA, callB, notice), sent(call("2"), notice),
			server(nullResult), got(answered(`"a"`)), sent(call("3")), server(nullResult), got(answered(`"b"`)), forward(callC), sent(call("4")), server(nullError), got(errored(`"c"`)),
		}},
		{name: "an answer that is no JSON shows that the notification before was not answered", steps: []step{
			forward(notice, callA), sent(notice, call("1")), server(`{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}`), got(unusable("a")),
			forward(callB), sent(call("2")), server(nullError), got(errored(`"b"`)),
		}},
		{name: "a request that is given up ends the session", opts: opts, steps: []step{
			forward(callA), sent(call("1")), server(nullResult), got(answered(`"a"`)), forward(callB), after(time.Second), forward(callC), sent(call("2")),
			after(9 * time.Second), got(`fail "b": timeout, final (timeout)`, "lost "+callC), discard, ended,
		}},
		{name: "a request that is cancelled ends it", steps: []step{
			forward(callA), sent(call("1")), server(nullResult), got(answered(`"a"`)), forward(callB, cancelOf(`"b"`), callC), sent(call("2"), cancelOf("2")),
			after(2 * time.Second), got(`fail "b": cancelled, final (canceled)`, "lost "+callC), ended,
		}},
		{name: "a cancelled one that is answered does not", steps: []step{
			forward(callA), sent(call("1")), server(nullResult), got(answered(`"a"`)), forward(callB, cancelOf(`"b"`), callC), sent(call("2"), cancelOf("2")),
			server(nullResult), got(answered(`"b"`)), sent(call("3")), server(nullResult), got(answered(`"c"`)),
		}},
		{name: "the first such answer ends it if it may be that to a request that was given up", opts: opts, steps: []step{
			forward(callA), after(10 * time.Second), got(`fail "a": timeout, final (timeout)`), discard,
			forward(callB), sent(call("3")), server(nullResult), got(`fail "b": session_lost, final (session_lost)`), ended,
		}},
		{name: "a call of the gateway that is given up ends it", steps: []step{
			forward(callA), sent(call("1")), server(nullResult), got(answered(`"a"`)), own("tools/list", time.Second), sent(sentPrefix + "2*"),
			after(time.Second), got("own tools/list failed: context deadline exceeded"), ended,
		}},
		{name: "a call of the gateway waits its turn", steps: []step{
			forward(callA), sent(call("1")), server(nullResult), got(answered(`"a"`)), forward(callB), sent(call("2")), own("tools/list", time.Second), sent(),
			server(nullResult), got(answered(`"b"`)), sent(sentPrefix + "3*"), server(nullResult), got(`own tools/list: ` + valued("3")),
		}},
	})
}

// Where nobody can tell whose answer it is, no client of a shared session gets it.
func TestResponsesWithoutIDOnASharedSession(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "fail all that are out, and the next wait until the server has answered those", clients: 3, opts: shared, steps: []step{
			from(0, callA), from(1, callB), sent(call("1"), call("2")), server(nullResult), at(0, unusable("a")), at(1, unusable("b")), serialized(1),
			from(2, callA, callB), sent(), server(nullResult), at(0), at(1), at(2), sent(call("3")), server(nullResult), at(2, answered(`"a"`)),
			sent(call("4")), server(nullResult), at(2, answered(`"b"`)),
		}},
		{name: "unless it came in the HTTP response to one", clients: 2, opts: shared, attributed: true, steps: []step{
			from(0, callA), from(1, callB), sent(call("1"), call("2")), with("2", nullResult), at(1, answered(`"b"`)), with("1", result("77")), at(0, answer(`"a"`)),
			matched("fifo", 2), serialized(0),
		}},
		{name: "a late one is not that of the request with which it comes", clients: 2, opts: shared, attributed: true, steps: []step{
			from(0, callA, callC), sent(call("1"), call("2")), with("1", result("1")), with("2", result("2")), at(0, answer(`"a"`), answer(`"c"`)), from(1, callB), sent(call("3")),
			with("3", result("2")), at(1), dropped(metrics.DroppedUnknownResponse, 1), with("3", result("3")), at(1, answer(`"b"`)),
		}},
		{name: "one that comes in the HTTP response to a request that is answered is for nobody", clients: 2, opts: shared, attributed: true, steps: []step{
			from(0, callA), from(1, callB), sent(call("1"), call("2")), with("1", result("1")), at(0, answer(`"a"`)),
			with("1", nullResult), with("1", nullError), with("1", unread), at(1), dropped(metrics.DroppedUnknownResponse, 3),
			with("2", result("2")), at(1, answer(`"b"`)), serialized(0),
		}},
		{name: "so is one in that to a request whose client has left", clients: 2, opts: shared, attributed: true, steps: []step{
			from(0, callA), from(1, callB), sent(call("1"), call("2")), leaves(0), with("1", nullResult), at(1), discard,
			with("2", result("2")), at(1, answer(`"b"`)),
		}},
		{name: "also if it names the others", clients: 3, opts: shared, steps: []step{
			from(0, callA), from(1, callB), from(2, callC), sent(call("1"), call("2"), call("3")), server(nullResult),
			at(0, unusable("a")), at(1, unusable("b")), at(2, unusable("c")), from(0, callA), sent(), server(result("1"), result("2")),
			at(0), at(1), at(2), sent(call("4")), server(result("4")), at(0, answer(`"a"`)),
		}},
		{name: "an answer that is no JSON is one of those", clients: 3, opts: shared, steps: []step{
			from(0, callA), from(1, callB), sent(call("1"), call("2")), server(nullResult), at(0, unusable("a")), at(1, unusable("b")), from(2, callC), sent(),
			server(`{"jsonrpc":"2.0","id":2,"result":{"x":NaN}}`), sent(call("3")), server(result("3")), at(2, answer(`"c"`)),
		}},
		{name: "so is one to a message that the server could not read", clients: 3, opts: shared, steps: []step{
			from(0, callA), from(1, callB), sent(call("1"), call("2")), server(nullResult), at(0, unusable("a")), at(1, unusable("b")), from(2, callC), sent(),
			server(unread), sent(call("3")), server(nullResult), at(2, answered(`"c"`)),
		}},
		{name: "whose ids the server counts itself, go to the only request", clients: 2, opts: shared, steps: []step{
			from(0, callA), sent(call("1")), server(result("0")), at(0, answer(`"a"`)), from(0, callA), from(1, callB), sent(call("2")), server(result("1")), at(0, answer(`"a"`)),
			sent(call("3")), server(result("2")), at(1, answer(`"b"`)), matched("fifo", 3),
		}},
		{name: "a client that leaves lets the server finish", clients: 2, opts: shared, steps: []step{
			from(0, callA), sent(call("1")), server(nullResult), at(0, answered(`"a"`)), from(0, callB), sent(call("2")), leaves(0), sent(),
			from(1, callC), sent(), server(nullResult), at(0), at(1), sent(call("3")), server(nullResult), at(1, answered(`"c"`)),
		}},
		{name: "what a client that leaves has subscribed to is taken back", clients: 2, opts: shared, steps: []step{
			from(0, callA), sent(call("1")), server(nullResult), discard, from(0, subscribe("8", "f:/a")), sent(subscribe("2", "f:/a")), leaves(0), sent(),
			server(noID), sent(unsubscribe("3", "f:/a")), server(noID), at(0), from(1, callA), sent(call("4")), server(nullResult), at(1, answered(`"a"`)),
		}},
		{name: "one that left before the first such answer ends the session", clients: 2, opts: shared, steps: []step{
			from(0, callA), sent(call("1")), leaves(0), sent(cancelled("1", "the client has left")), from(1, callB), sent(call("2")),
			server(nullResult), at(0), at(1, `fail "b": session_lost, final (session_lost)`), ended,
		}},
		{name: "an unread message may be that of one who left", clients: 2, opts: shared, steps: []step{
			from(0, callA), sent(call("1")), leaves(0), discard, server(unread), from(1, callB), sent(call("2")), server(unread), at(1),
			server(result("2")), at(1, answer(`"b"`)),
		}},
		{name: "a request of the gateway that is given up ends it", clients: 2, opts: multiplex.Options{Shared: true, RequestTimeout: 20 * time.Second}, steps: []step{
			from(0, subscribe("1", "f:/a")), sent(subscribe("1", "f:/a")), server(nullID), at(0, `answer 1: {"jsonrpc":"2.0","id":1,"result":{}}`),
			leaves(0), sent(unsubscribe("2", "f:/a")), after(19 * time.Second), from(1, callA), sent(), after(time.Second), at(1, "lost "+callA), discard, ended,
		}},
	})
}

const (
	notice = `{"jsonrpc":"2.0","method":"notifications/x"}`
	unread = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`

	nullResult  = `{"jsonrpc":"2.0","id":null,"result":{"v":1}}`
	initialized = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`

	noIDResult = `{"jsonrpc":"2.0","result":{"v":1}}`
)

// valued is the answer nullResult under an id.
func valued(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{"v":1}}` }

// answered expects nullResult or noIDResult to have reached the client, errored nullError.
func answered(id string) string { return "answer " + id + ": *" }

func errored(id string) string {
	return `answer ` + id + `: {"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"m"}} (-32601)`
}

// ended expects the session to be over, because answers could be mixed up.
func ended(w *world) {
	w.Helper()
	if err := w.session.Err(); err == nil || !strings.Contains(err.Error(), "does not name its answers") {
		w.Errorf("the session's end: %v", err)
	}
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

// A number in another form can only mean the request with that number.
func TestIDsInAnotherForm(t *testing.T) {
	text := func(id string) string { return `{"jsonrpc":"2.0","id":"` + id + `","result":{}}` }
	runScenarios(t, []scenario{
		{name: "as a string", opts: shared, clients: 2, steps: []step{
			from(0, callA), from(1, callB), sent(call("1"), call("2")), server(text("2"), text("1"), text("1")), at(0, answer(`"a"`)), at(1, answer(`"b"`)),
			matched("string", 2), matched("orphan", 1),
		}},
		{name: "with a fraction", opts: shared, clients: 2, steps: []step{
			from(0, callA), from(1, callB), sent(call("1"), call("2")), server(result("2.0"), result("1.00")), at(0, answer(`"a"`)), at(1, answer(`"b"`)), matched("id", 2),
		}},
		{name: "no other", opts: shared, clients: 2, steps: []step{
			from(0, callA), from(1, callB), sent(call("1"), call("2")), server(text("02")), at(0, unusable("a")), at(1, unusable("b")), matched("orphan", 1),
		}},
	})
}

// Servers print what others wrote: an object of texts alone in a line is no answer of a server that names its answers
// by numbers, to no request of any client. In a shared session nothing is that does not name its request as the others
// do.
func TestTextsAreNoAnswersOfAServerThatNamesByNumbers(t *testing.T) {
	text := func(id string) string { return `{"jsonrpc":"2.0","id":"` + id + `","result":{"from":"eve"}}` }
	introduced := func(w *world) {
		play(w, []step{own("initialize", time.Minute), sent(sentPrefix + "1*"), server(initialized), got("own initialize: *")})
	}
	all := []string{text("2"), text("3"), text("1"), text("9"), text("x"), `{"id":"2","result":{"from":"eve"}}`, `{"jsonrpc":"2.0","id":"2","result":{"x":NaN}}`}
	unnamed := []string{`{"jsonrpc":"2.0","result":{"from":"eve"}}`, nullResult, nullError, valued("9"), valued("1")}
	runScenarios(t, []scenario{
		{name: "in a session of one's own", steps: []step{
			introduced, forward(callA, callB), sent(call("2"), call("3")), server(all...), got(), goesOn, server(result("3"), result("2")), got(answer(`"b"`), answer(`"a"`)), serialized(0),
		}},
		{name: "in a shared session", opts: shared, clients: 2, steps: []step{
			introduced, from(0, callA), from(1, callB), sent(call("2"), call("3")), server(all...), at(0), at(1), goesOn,
			server(result("3")), at(1, answer(`"b"`)), server(append(all, unnamed...)...), at(0), at(1), goesOn, server(result("2")), at(0, answer(`"a"`)), serialized(0),
		}},
		{name: "nor after a request was given up", opts: multiplex.Options{Shared: true, RequestTimeout: 10 * time.Second}, clients: 2, steps: []step{
			introduced, from(0, callA), sent(call("2")), server(result("2")), discard, from(0, callA), after(10 * time.Second), discard,
			from(1, callB), discard, server(append(all, unnamed...)...), at(0), at(1), goesOn,
			server(result("4")), at(1, answer(`"b"`)),
		}},
	})
}

// goesOn expects that the session is not over.
func goesOn(w *world) {
	w.Helper()
	ssetest.Want(w, "the session's end", w.session.Err(), nil)
}

// An id that matches nothing is as good as none. One that the session has given out is a
// late or a second answer, if the server names its answers.
func TestUnknownIDs(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "answer the oldest request", steps: []step{
			forward(callA, callB), sent(call("1"), call("2")), server(result("77")), got(answer(`"a"`)), server(result(`"x"`)), got(answer(`"b"`)),
			forward(callC, callA), sent(call("3")), server(result("-1")), got(answer(`"c"`)), sent(call("4")), server(result("1e0")), got(answer(`"a"`)),
			matched("fifo", 4), serialized(1),
		}},
		{name: "also one that the server counts itself", steps: []step{
			forward(callA), sent(call("1")), server(result("0")), got(answer(`"a"`)), forward(callB), sent(call("2")), server(result("1")), got(answer(`"b"`)), matched("fifo", 2),
		}},
		{name: "also that of the first, under which some servers answer all", steps: []step{
			forward(callA), sent(call("1")), server(result("1")), got(answer(`"a"`)), forward(callB, callC), sent(call("2"), call("3")), server(result("1")), got(answer(`"b"`)),
			server(result("1")), got(answer(`"c"`)), forward(callA), sent(call("4")), server(result("1")), got(answer(`"a"`)), matched("fifo", 3), serialized(1),
		}},
		{name: "but not a second one to initialize", opts: shared, clients: 1, steps: []step{
			own("initialize", time.Minute), sent(sentPrefix + "1*"), server(initialized), discard, forward(callA), sent(call("2")), server(initialized), got(),
			server(result("2")), got(answer(`"a"`)), serialized(0),
		}},
		{name: "also that of one that waits", steps: []step{
			forward(callA), sent(call("1")), server(result("1")), got(answer(`"a"`)), forward(callA), sent(call("2")), server(result("77")), got(answer(`"a"`)),
			forward(callA, callB), sent(call("3")), server(result("4")), got(answer(`"a"`)), sent(call("4")), server(result("5")), got(answer(`"b"`)), matched("fifo", 3),
		}},
		{name: "not one of a request before, where the server names its answers", steps: []step{
			forward(callA, callC), sent(call("1"), call("2")), server(result("1"), result("2")), got(answer(`"a"`), answer(`"c"`)),
			forward(callB), sent(call("3")), server(result("2")), got(), dropped(metrics.DroppedUnknownResponse, 1), server(result("3")), got(answer(`"b"`)), serialized(0),
		}},
		{name: "nothing, while no request is out", steps: []step{server(result("77"), nullError), dropped(metrics.DroppedUnknownResponse, 2), serialized(0)}},
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
		{name: "an answer that is no JSON fails the request whose id can still be read", clients: 2, opts: shared, steps: []step{
			from(0, callA), from(1, callB), sent(call("1"), call("2")), server(`{"jsonrpc":"2.0","id":2,"result":{"x":NaN}}`), at(1, unusable("b")),
			server(`{'jsonrpc': '2.0', 'id': 1, 'result': None}`), at(0, unusable("a")),
		}},
		{name: "one that is cut short, too", steps: []step{
			forward(callA, callB), sent(call("1"), call("2")), server(`{"jsonrpc":"2.0","id":1,"result":{"a":"b`), got(unusable("a")), server(result("2")), got(answer(`"b"`)),
		}},
		{name: "a line of a log is no answer, whatever its id", steps: []step{
			forward(callA), sent(call("1")), server(`{"level":30,"id":1,"msg":"x"}`, `{"id":1,"method":"GET","result":"done"}`, `{"id":1,"error":"boom"}`, `{"id":1}`),
			got(), dropped(metrics.DroppedInvalidMessage, 4), server(result("1")), got(answer(`"a"`)),
		}},
		{name: "an answer that lacks its version alone is one", steps: []step{
			forward(callA), sent(call("1")), server(`{"id":1,"result":{}}`), got(answer(`"a"`)),
		}},
		{name: "invalid request of the server is no answer", steps: []step{
			forward(callA), sent(call("1")),
			server(`{"jsonrpc":"2.0","id":1,"method":"roots/list","params":5}`, `{"jsonrpc":"2.0","id":1,"method":5}`, `{"id":1,"method":"ping"}`),
			got(), dropped(metrics.DroppedInvalidMessage, 3),
			server(result("1")), got(answer(`"a"`)),
		}},
	})
}

// An id with which a broken answer ends may be the beginning of a longer one: that of a request which is
// out, or was given up and may still be answered.
func TestAnswerThatIsCutInItsID(t *testing.T) {
	const cutIn1, cutIn2 = `{"result":{},"jsonrpc":"2.0","id":1`, `{"result":{},"jsonrpc":"2.0","id":2`
	var ten, others []string // ten requests, the server's answers to all but the first and the last
	for i, id := range strings.Split("a b c d e f g h i j", " ") {
		ten = append(ten, strings.Replace(callA, `"a"`, `"`+id+`"`, 1))
		if i > 0 && i < 9 {
			others = append(others, result(strconv.Itoa(i+1)))
		}
	}
	runScenarios(t, []scenario{
		{name: "no other begins so", steps: []step{
			forward(callA, callB), discard, server(cutIn2, result("1")), got(unusable("b"), answer(`"a"`)),
		}},
		{name: "one that is out does", steps: []step{
			forward(ten...), server(others...), discard, server(cutIn1), got(), dropped(metrics.DroppedInvalidMessage, 1),
			server(result("1"), result("10")), got(answer(`"a"`), answer(`"j"`)),
		}},
		{name: "one that is answered does", steps: []step{
			forward(ten...), server(append(others, result("10"))...), discard, server(cutIn1), got(unusable("a")),
		}},
		{name: "one that was given up does", steps: []step{
			forward(ten...), server(others...), forward(cancelOf(`"j"`)), after(2 * time.Second), discard,
			server(cutIn1), got(), dropped(metrics.DroppedInvalidMessage, 1), server(result("1")), got(answer(`"a"`)),
		}},
		{name: "one that is given up does not", steps: []step{
			forward(callA, callB, cancelOf(`"a"`)), after(2 * time.Second), discard, server(cutIn2), got(unusable("b")),
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
