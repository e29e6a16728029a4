package multiplex_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`

func pingAs(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }

const listB = `{"jsonrpc":"2.0","id":"b","method":"tools/list"}`

// traffic has the client make a call each second, and cancelledTraffic cancels each
// before its time is up.
func traffic(d time.Duration) step          { return manyCalls(d, 0) }
func cancelledTraffic(d time.Duration) step { return manyCalls(d, 10) }

// manyCalls is traffic in which each call is cancelled after so many seconds; 0: never.
func manyCalls(d time.Duration, cancelAfter int) step {
	return func(w *world) {
		begun := time.Now()
		for i := 0; time.Since(begun) < d; i++ {
			id := strconv.Itoa(1000 + i)
			forward(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call"}`)(w)
			if old := i - cancelAfter; cancelAfter > 0 && old >= 0 {
				forward(cancelOf(strconv.Itoa(1000 + old)))(w)
			}
			time.Sleep(min(time.Second, d-time.Since(begun)))
		}
		discard(w)
	}
}

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
			sent(cancelled("1", timedOut), ping),
			after(5 * time.Second), sent(`{"jsonrpc":"2.0","id":3,"method":"ping"}`),
			after(5*time.Second - 1), endedNot(), after(1), endedWith(multiplex.ErrHung),
		}},
		{name: "one missed ping does not end it", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(60 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut), ping),
			after(5 * time.Second), sent(`{"jsonrpc":"2.0","id":3,"method":"ping"}`), server(result("3")),
			after(time.Hour), endedNot(), sent(),
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
			after(time.Hour), sent(),
		}},
		{name: "a slow call beside other answers neither", opts: opts, steps: []step{
			forward(callA), after(31 * time.Second), forward(callB), sent(call("1"), call("2")), server(result("2")), got(answer(`"b"`)),
			after(29 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut)),
			after(time.Hour), sent(),
		}},
		{name: "any message shows that it lives", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(31 * time.Second), server("not even JSON"), after(29 * time.Second),
			got(gaveUpA), sent(cancelled("1", timedOut)),
		}},
		{name: "any message clears it, the ping unanswered", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(60 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut), ping),
			forward(callB), sent(call("3")), server("not even JSON"), sent(),
			after(10 * time.Second), endedNot(), sent(), server(result("3"), result("2")), got(answer(`"b"`)), after(time.Hour), sent(),
		}},
		{name: "silence adds up over requests that are given up earlier", opts: multiplex.Options{RequestTimeout: 20 * time.Second, HangTimeout: 30 * time.Second}, steps: []step{
			forward(callA), sent(call("1")), after(20 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut)),
			after(time.Hour), forward(callB), sent(call("2")), after(20 * time.Second), got(`fail "b": timeout, final (timeout)`),
			sent(cancelled("2", timedOut), `{"jsonrpc":"2.0","id":3,"method":"ping"}`), server(result("3")),
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
		}},
		{name: "requests pass beside the ping, which gets their time", opts: opts, steps: []step{
			forward(callA), after(40 * time.Second), forward(callB), sent(call("1"), call("2")),
			after(20 * time.Second), got(gaveUpA), sentInAnyOrder(cancelled("1", timedOut), pingAs("3")),
			forward(callC), sent(call("4")), after(39 * time.Second), sent(), server(result("4")), got(answer(`"c"`)),
			after(time.Second), got(`fail "b": timeout, final (timeout)`),
			sent(cancelled("2", timedOut)), after(time.Hour), sent(), endedNot(),
		}},
		{name: "a busy server answers the ping after its requests", opts: opts, steps: []step{
			forward(callA), after(59 * time.Second), forward(callB), sent(call("1"), call("2")),
			after(time.Second), got(gaveUpA), sentInAnyOrder(cancelled("1", timedOut), pingAs("3")),
			after(58 * time.Second), server(result("2"), result("3")), got(answer(`"b"`)), after(time.Hour), sent(), endedNot(),
		}},
		{name: "a request that comes after the ping holds up the verdict", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(60 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut), ping),
			after(5*time.Second - 1), forward(callB), sent(call("3")), after(50 * time.Second), sent(), server(result("3")), got(answer(`"b"`)),
			after(time.Hour), sent(), endedNot(),
		}},
		{name: "constant traffic does not keep a hung server", opts: opts, steps: []step{
			forward(callA), after(60 * time.Second), discard, // a ping at 60 s, another at 120 s
			traffic(120*time.Second - 1), endedNot(),
			after(2), endedWith(multiplex.ErrHung), discard,
		}},
		{name: "nor does constant traffic of cancelled requests", opts: opts, steps: []step{
			forward(callA), after(60 * time.Second), discard, cancelledTraffic(120*time.Second - 1), endedNot(),
			after(2), endedWith(multiplex.ErrHung), discard,
		}},
		{name: "requests that a hung server has end with it", opts: opts, steps: []step{
			forward(callA), sent(call("1")), after(60 * time.Second), got(gaveUpA), sent(cancelled("1", timedOut), ping),
			after(time.Second), forward(listB), sent(sentPrefix + "3*"), after(60*time.Second - 1), got(), after(1),
			got(`fail "b": timeout, retryable (timeout)`), sentInAnyOrder(cancelled("3", timedOut), pingAs("4")),
			forward(listB), sent(sentPrefix + "5*"), after(5 * time.Second), endedNot(), after(55 * time.Second),
			got("lost " + listB), endedWith(multiplex.ErrHung),
		}},
		{name: "a task's result may take its time, and the ping as long", opts: opts, steps: []step{
			forward(`{"jsonrpc":"2.0","id":"r","method":"tasks/result","params":{"taskId":"x"}}`, callA),
			discard, after(60 * time.Second), got(gaveUpA), sentInAnyOrder(cancelled("2", timedOut), pingAs("3")),
			forward(callB), sent(call("4")), after(time.Minute), got(`fail "b": timeout, final (timeout)`), sent(cancelled("4", timedOut)),
			after(7 * time.Minute), server(result("1")), got(answer(`"r"`)), after(time.Hour), sent(), endedNot(),
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

// A server need not answer a request that its client has cancelled.
func TestCancelledCallsAreNoEvidenceOfAHang(t *testing.T) {
	opts := multiplex.Options{RequestTimeout: 60 * time.Second, HangTimeout: 30 * time.Second}
	const canceledA = `fail "a": cancelled, final (canceled)`
	cancelOnWire := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	runScenarios(t, []scenario{
		{name: "giving one up starts no suspicion", opts: opts, steps: []step{
			forward(callA), after(59 * time.Second), forward(cancelOf(`"a"`)), after(2 * time.Second), got(canceledA),
			sent(call("1"), cancelOnWire), forward(callB), sent(call("2")),
			after(time.Second), server(result("2")), got(answer(`"b"`)), after(time.Hour), sent(),
		}},
		{name: "the silence after the cancellation does not count", opts: multiplex.Options{RequestTimeout: 60 * time.Second, HangTimeout: 61 * time.Second}, steps: []step{
			forward(callA, cancelOf(`"a"`)), after(2*time.Second - 1), forward(callB), after(1), got(canceledA), after(60 * time.Second),
			got(`fail "b": timeout, final (timeout)`), sent(call("1"), cancelOnWire, call("2"), cancelled("2", timedOut)),
		}},
		{name: "nor does a client that leaves", opts: multiplex.Options{RequestTimeout: 60 * time.Second, HangTimeout: 30 * time.Second, Shared: true}, clients: 2, steps: []step{
			from(0, callA), after(59 * time.Second), leaves(0), sent(call("1"), cancelled("1", "the client has left")),
			from(1, callB), sent(call("2")), server(result("2")), at(1, answer(`"b"`)), after(time.Hour), sent(),
		}},
		{name: "a request that was not cancelled is evidence all the same", opts: opts, steps: []step{
			forward(callA, callB), sent(call("1"), call("2")), forward(cancelOf(`"a"`)), sent(cancelOnWire), after(60 * time.Second),
			got(canceledA, `fail "b": timeout, final (timeout)`), sent(cancelled("2", timedOut), pingAs("3")), server(result("3")),
		}},
		{name: "others on the session are not held up", opts: multiplex.Options{RequestTimeout: 60 * time.Second, HangTimeout: 30 * time.Second, Shared: true}, clients: 2, steps: []step{
			from(0, callA), after(40 * time.Second), from(0, cancelOf(`"a"`)), after(2 * time.Second), at(0, canceledA), discard,
			from(1, callB), sent(call("2")), server(result("2")), at(1, answer(`"b"`)),
		}},
	})
}

// A server that waits for a person to fill in a form has nothing to say meanwhile.
func TestOpenFormsAreNoEvidenceOfAHang(t *testing.T) {
	opts := multiplex.Options{RequestTimeout: 60 * time.Second, HangTimeout: 30 * time.Second, Shared: true}
	serves := func(w *world) { w.clients[0].serves = []string{"elicitation/create"} }
	const timedOutB = `fail "b": timeout, final (timeout)`
	runScenarios(t, []scenario{
		{name: "no suspicion while one is open, and silence anew after it", opts: opts, clients: 2, attributed: true, steps: []step{
			serves, from(0, callA), sent(call("1")), with("1", elicit("5", "")), from(1, callB), sent(call("2")),
			after(60 * time.Second), at(1, timedOutB), sent(cancelled("2", timedOut)),
			from(1, callC), sent(call("3")), after(35 * time.Second), answersForm, sent(`{"jsonrpc":"2.0","id":5,"result":{}}`),
			after(25 * time.Second), at(0, `fail "a": timeout, final (timeout)`), at(1, `fail "c": timeout, final (timeout)`),
			sentInAnyOrder(cancelled("1", timedOut), cancelled("3", timedOut)),
			from(1, callB), sent(call("4")), after(60 * time.Second), at(1, timedOutB), sent(cancelled("4", timedOut), pingAs("5")),
			with("", result("5")),
		}},
		{name: "also not when its client leaves", opts: opts, clients: 2, attributed: true, steps: []step{
			serves, from(0, callA), sent(call("1")), with("1", elicit("5", "")), after(35 * time.Second), from(1, callB), discard,
			after(55 * time.Second), leaves(0), discard, after(5 * time.Second), at(1, timedOutB), sent(cancelled("2", timedOut)),
		}},
	})
}

// answersForm has the first client answer the request of the server that it got.
func answersForm(w *world) {
	w.Helper()
	forward(`{"jsonrpc":"2.0","id":` + delivered(w, "elicitation/create") + `,"result":{}}`)(w)
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
