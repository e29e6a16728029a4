package multiplex_test

import (
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// The rules of a session that several clients share, in the order of the design.

var shared = multiplex.Options{Shared: true}

// tokenCall is callA with a progress token; tokenSent is it as the server sees it.
func tokenCall(token string) string {
	return `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","_meta":{"v":1.0, "progressToken": ` + token + `}}}`
}

func tokenSent(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"x","_meta":{"v":1.0, "progressToken": ` + id + `}}}`
}

func progress(token, n string) string {
	return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":` + n + `,"progressToken":` + token + `,"total":1e2}}`
}

func notification(method, params string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`
}

func delivery(message string) string { return "deliver " + message }

func discard(w *world) {
	w.conn.take()
	for _, c := range w.clients {
		c.take()
	}
}

func TestProgressTokenIsOursAtTheServer(t *testing.T) {
	for _, token := range []string{`0`, `"7"`, `1.50`, `"\u0041"`} {
		runScenarios(t, []scenario{{name: token, opts: shared, clients: 2, steps: []step{
			from(0, tokenCall(token)), from(1, tokenCall(token)), sent(tokenSent("1"), tokenSent("2")),
			server(progress("2", "1.0")), at(0), at(1, delivery(progress(token, "1.0"))),
			server(progress("1", "2")), at(0, delivery(progress(token, "2"))), at(1),
			server(result("1"), result("2")), at(0, answer(`"a"`)), at(1, answer(`"a"`)),
		}}})
	}
	runScenarios(t, []scenario{
		{name: "one that parsers may read otherwise is refused", opts: shared, clients: 2, steps: []step{
			from(1, tokenCall("1")), sent(tokenSent("1")),
			forward(tokenCall(`5,"progressToken":1`), tokenCall(`5,"ProgressToken":1`),
				`{"jsonrpc":"2.0","id":"a","method":"x","params":{"_meta":{},"_Meta":{"progressToken":1}}}`),
			at(0, `fail "a": , final (-32602)`, `fail "a": , final (-32602)`, `fail "a": , final (-32602)`), sent(),
			server(result("1")), at(1, answer(`"a"`)),
		}},
	})
}

func TestProgressGoesToItsCallAlone(t *testing.T) {
	late := dropped(metrics.DroppedUnknownProgress, 1)
	runScenarios(t, []scenario{
		{name: "of a task until that is over", opts: shared, clients: 2, steps: []step{
			from(0, tokenCall(`"t"`)), from(1, tokenCall(`"t"`)), discard,
			server(`{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"k","status":"working"}}}`), discard,
			server(progress("1", "1")), at(0, delivery(progress(`"t"`, "1"))), at(1),
			server(taskStatus("k", "working"), progress("1", "2"), taskStatus("k", "completed"), progress("1", "3")),
			at(0, delivery(taskStatus("k", "working")), delivery(progress(`"t"`, "2")), delivery(taskStatus("k", "completed"))), at(1), late,
			server(result("2")), at(1, answer(`"a"`)),
		}},
		{name: "of a task until its result is there, on a session of one's own", steps: []step{
			forward(tokenCall("7")), server(`{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"k","status":"working"}}}`),
			forward(taskRequest("tasks/result", "k")), discard, server(progress("1", "1"), result("2"), progress("1", "2")),
			got(delivery(progress("7", "1")), answer(`"t"`)), late,
		}},
	})
}

// Progress gives a request more time, but not for ever.
func TestProgressExtendsTheDeadline(t *testing.T) {
	opts := multiplex.Options{Shared: true, RequestTimeout: 10 * time.Second, MaxRequestTimeout: 25 * time.Second}
	runScenarios(t, []scenario{
		{name: "from when it came", opts: opts, steps: []step{
			forward(tokenCall("7")), after(9 * time.Second), server(progress("1", "1")), discard,
			after(10*time.Second - 1), got(), after(1), got(`fail "a": timeout, final (timeout)`), sent(cancelled("1", timedOut)),
		}},
		{name: "up to the maximum", opts: opts, steps: []step{
			forward(tokenCall("7")), after(9 * time.Second), server(progress("1", "1")), after(9 * time.Second), server(progress("1", "2")),
			discard, after(7*time.Second - 1), got(), after(1), got(`fail "a": timeout, final (timeout)`), sent(cancelled("1", timedOut)),
		}},
		{name: "the result of a task may take the maximum", opts: multiplex.Options{RequestTimeout: 10 * time.Second, MaxRequestTimeout: 25 * time.Second}, steps: []step{
			forward(taskRequest("tasks/result", "k")), discard, after(25*time.Second - 1), got(), after(1),
			got(`fail "t": timeout, final (timeout)`), sent(cancelled("1", timedOut)),
		}},
	})
}

func taskRequest(method, id string) string {
	return `{"jsonrpc":"2.0","id":"t","method":"` + method + `","params":{"taskId":"` + id + `"}}`
}

func taskStatus(id, status string) string {
	return notification("notifications/tasks/status", `{"taskId":"`+id+`","status":"`+status+`"}`)
}

func cancelOf(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

func TestServerTakesItsRequestBack(t *testing.T) {
	synctestWorld(t, scenario{}, func(w *world) {
		play(w, []step{serving, server(roots)})
		id := delivered(w, "roots/list")
		play(w, []step{
			server(cancelOf("8")), got(), dropped(metrics.DroppedUnknownRequest, 1),
			server(cancelOf("7")), got(delivery(cancelOf(id))),
			forward(result(id)), sent(), dropped(metrics.DroppedUnknownResponse, 1),
		})
	})
}

func TestHandshakeOfAClientNeverReachesASharedSession(t *testing.T) {
	var steps []step
	for _, method := range []string{"initialize", "ping", "server/discover"} {
		steps = append(steps, forward(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`), sent(), got(`fail 1: , final (-32600)`))
	}
	steps = append(steps, forward(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), sent(), dropped(metrics.DroppedShared, 1))
	runScenarios(t, []scenario{{name: "refused", opts: shared, steps: steps}})
}

func TestNotificationsOfOneClientDoNotReachTheServerOfAll(t *testing.T) {
	const changed, other = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, `{"jsonrpc":"2.0","method":"notifications/x"}`
	runScenarios(t, []scenario{
		{name: "shared", opts: shared, steps: []step{forward(changed, other), sent(), dropped(metrics.DroppedShared, 2)}},
	})
}

// A client cannot use a parser that does not tell upper from lower case to speak
// in the name of another.
func TestMessagesThatCanBeReadInTwoWaysAreRefused(t *testing.T) {
	runScenarios(t, []scenario{{name: "shared", opts: shared, clients: 2, steps: []step{
		from(0, callA), sent(call("1")),
		from(1, `{"jsonrpc":"2.0","id":"b","ID":1,"method":"x"}`), at(1, `fail "b": , final (-32600)`), sent(),
		from(1, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"},"Params":{"requestId":1}}`), sent(),
		from(1, `{"jsonrpc":"2.0","id":"gw-1","Id":7,"result":{}}`), sent(), dropped(metrics.DroppedShared, 2),
		server(result("1")), at(0, answer(`"a"`)),
	}}})
}
