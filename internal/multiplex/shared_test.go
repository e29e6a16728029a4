package multiplex_test

import (
	"fmt"
	"testing"

	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestListChangedReachesAllOnce(t *testing.T) {
	var steps []step
	for _, list := range []string{"tools", "prompts", "resources"} {
		changed := `{"jsonrpc":"2.0","method":"notifications/` + list + `/list_changed"}`
		steps = append(steps, server(changed), at(0, delivery(changed)), at(1, delivery(changed)))
	}
	runScenarios(t, []scenario{{name: "each list", opts: shared, clients: 2, steps: steps}})
}

func made(wire, task string) string {
	return `{"jsonrpc":"2.0","id":` + wire + `,"result":{"task":{"taskId":"` + task + `","status":"working"}}}`
}

func taskRequest(method, id string) string {
	return `{"jsonrpc":"2.0","id":"t","method":"` + method + `","params":{"taskId":"` + id + `"}}`
}

func taskStatus(id, status string) string {
	return notification("notifications/tasks/status", `{"taskId":"`+id+`","status":"`+status+`"}`)
}

func TestTasksBelongToWhoMadeThem(t *testing.T) {
	foreign := []string{`fail "t": , final (-32602)`, `fail "t": , final (-32602)`, `fail "t": , final (-32602)`}
	all := func(id string) []string {
		return []string{taskRequest("tasks/get", id), taskRequest("tasks/result", id), taskRequest("tasks/cancel", id)}
	}
	list := func(wire, entries string) string {
		return `{"jsonrpc":"2.0","id":` + wire + `,"result":{"tasks":[` + entries + `],"nextCursor":"c"}}`
	}
	runScenarios(t, []scenario{
		{name: "requests of others about them are refused here", opts: shared, clients: 2, steps: []step{
			from(0, callA), server(made("1", "k")), discard,
			from(1, all("k")...), at(1, foreign...), from(1, all("unknown")...), at(1, foreign...), sent(),
			from(1, `{"jsonrpc":"2.0","id":"t","method":"tasks/get","params":{"taskId":"k","taskID":"k"}}`), at(1, foreign[0]), sent(),
			from(0, taskRequest("tasks/get", "k")), sent(`{"jsonrpc":"2.0","id":8,"method":"tasks/get","params":{"taskId":"k"}}`), server(result("8")), at(0, answer(`"t"`)),
		}},
		{name: "a list has one's own alone, as they came", opts: shared, clients: 2, steps: []step{
			from(0, callA), from(1, callA), server(made("1", "k"), made("2", "l")), discard,
			from(0, `{"jsonrpc":"2.0","id":"t","method":"tasks/list"}`), discard,
			server(list("3", `{"taskId":"k", "n":1e2},{"taskId":"l"},{"taskId":"other"},{},1`)),
			at(0, `answer "t": `+list(`"t"`, `{"taskId":"k", "n":1e2}`)), at(1),
			from(1, `{"jsonrpc":"2.0","id":"t","method":"tasks/list"}`), discard, server(list("4", `{"taskId":"k"}`)),
			at(1, `answer "t": `+list(`"t"`, ``)),
		}},
		{name: "their news reach the owner", opts: shared, clients: 2, steps: []step{
			from(0, callA), from(1, callA), server(made("1", "k"), made("2", "l")), discard,
			server(taskStatus("l", "working"), taskStatus("x", "working")), at(0), at(1, delivery(taskStatus("l", "working"))),
			dropped(metrics.DroppedUnattributed, 1),
		}},
		{name: "of a principal they stay when the client leaves", opts: shared, clients: 2, steps: []step{
			from(0, callA), server(made("1", "k")), leaves(0), discard, joins("user-0"),
			server(taskStatus("k", "working")), at(1), at(2, delivery(taskStatus("k", "working"))),
			from(2, taskRequest("tasks/get", "k")), sent(sentPrefix + "2*"), server(result("2")), at(2, answer(`"t"`)),
			from(1, taskRequest("tasks/get", "k")), at(1, foreign[0]),
		}},
		{name: "of nobody known they go with the client", opts: shared, clients: 0, steps: []step{
			leaves(0), joins(""), joins(""), from(1, callA), server(made("1", "k")), discard,
			from(2, taskRequest("tasks/get", "k")), at(2, foreign[0]), leaves(1), joins(""),
			from(3, taskRequest("tasks/get", "k")), at(3, foreign[0]), sent(),
		}},
	})
}

func TestUnknownMessages(t *testing.T) {
	odd := notification("vendor/odd", `{"_meta":{"traceparent":"00-1"},"n":1.0}`)
	request := `{"jsonrpc":"2.0","id":%s,"method":"vendor/ask","params":{"_meta":{"traceparent":"00-1"},"n":1.0}}`
	runScenarios(t, []scenario{
		{name: "a request passes, with another id", opts: shared, steps: []step{
			forward(fmt.Sprintf(request, `"a"`)), sent(fmt.Sprintf(request, "1")), server(result("1")), got(answer(`"a"`)),
		}},
		{name: "a notification of the server reaches nobody when it is not known whose it is", opts: shared, clients: 2, steps: []step{
			server(odd), at(0), at(1), dropped(metrics.DroppedUnattributed, 1),
		}},
		{name: "the end of an elicitation, for one client alone, reaches nobody", opts: shared, steps: []step{
			joins("user-0"), server(notification("notifications/elicitation/complete", `{"elicitationId":"e"}`)), at(0), at(1), dropped(metrics.DroppedUnattributed, 1),
		}},
		{name: "or who made the request that it came with", opts: shared, clients: 2, attributed: true, steps: []step{
			from(0, callA), from(1, callA), discard, with("2", odd), at(0), at(1, delivery(odd)),
			with("", result("1"), result("2")), discard,
		}},
		{name: "nor, once that has left, who owns the task that it names", opts: shared, clients: 2, attributed: true, steps: []step{
			from(0, callA), from(1, callA), with("1", made("1", "k")), leaves(1), discard,
			with("2", notification("vendor/odd", `{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"k"}}}`)), at(0), dropped(metrics.DroppedUnattributed, 1),
		}},
		{name: "or all, of one principal", opts: shared, steps: []step{joins("user-0"), server(odd), at(0, delivery(odd)), at(1, delivery(odd))}},
	})
}

func TestClientThatLeaves(t *testing.T) {
	const left = "the client has left"
	runScenarios(t, []scenario{
		{name: "its requests are taken back at the server, and no other's", opts: shared, clients: 2, steps: []step{
			from(0, callA), from(1, callA), from(0, callB), sent(call("1"), call("2"), call("3")), leaves(0),
			sent(cancelled("1", left), cancelled("3", left)), leaves(0), sent(),
			server(result("1"), result("3")), at(0), dropped(metrics.DroppedUnknownResponse, 2), server(result("2")), at(1, answer(`"a"`)),
			from(0, callC), at(0, `not taken "c": the session is over for a client that has left`), sent(),
		}},
		{name: "its subscriptions end where they are the last", opts: shared, clients: 2, steps: []step{
			from(0, subscribe("8", "f:/a"), subscribe("9", "f:/b")), from(1, subscribe("8", "f:/b")), server(result("1"), result("2")), discard,
			leaves(0), sent(unsubscribe("4", "f:/a")), server(result("4")), at(0), at(1),
		}},
		{name: "one that was being asked for too", opts: shared, clients: 2, steps: []step{
			from(0, subscribe("8", "f:/a")), discard, leaves(0), sent(cancelled("1", left), unsubscribe("2", "f:/a")), server(result("1"), result("2")), at(0),
		}},
		{name: "the log level is that of those left", opts: shared, clients: 3, steps: []step{
			from(0, setLevel("8", "debug")), from(1, setLevel("8", "error")), server(result("1")), discard,
			leaves(0), sent(setLevel("3", "error")), server(result("3")), leaves(1), sent(),
		}},
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
