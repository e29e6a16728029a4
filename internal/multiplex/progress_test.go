package multiplex_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/metrics"
)

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

// The progress of the client's work on a server's request goes back under the
// server's token.
func TestProgressOnAServerRequest(t *testing.T) {
	for _, token := range []string{`1`, `"a"`, `1.50`} {
		synctestWorld(t, scenario{}, func(w *world) {
			play(w, []step{serving, server(`{"jsonrpc":"2.0","id":7,"method":"roots/list","params":{"_meta":{"progressToken":` + token + `,"x":1.0}}}`)})
			lines := w.clients[0].take()
			id := gatewayID.FindString(strings.Join(lines, ""))
			want := delivery(`{"jsonrpc":"2.0","id":` + id + `,"method":"roots/list","params":{"_meta":{"progressToken":` + id + `,"x":1.0}}}`)
			if len(lines) != 1 || lines[0] != want {
				t.Fatalf("got %q, want %s", lines, want)
			}
			play(w, []step{
				forward(progress(id, "1.0")), sent(progress(token, "1.0")), forward(progress("9", "1")), sent(progress("9", "1")),
				forward(result(id), progress(id, "2")), sent(result("7"), progress(id, "2")),
			})
		})
	}
}
