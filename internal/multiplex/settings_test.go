package multiplex_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func logged(level, more string) string {
	return notification("notifications/message", `{"level":"`+level+`","data":"x"`+more+`}`)
}

func setLevel(id, level string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"logging/setLevel","params":{"level":"` + level + `"}}`
}

func TestLogLevelOfTheSessionIsTheMostVerbose(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "sent only when that changes", opts: shared, clients: 3, steps: []step{
			from(0, setLevel("8", "warning")), sent(setLevel("1", "warning")), server(result("1")), at(0, answer("8")),
			from(1, setLevel("8", "error")), sent(), at(1, answer("8")),
			from(2, setLevel("8", "info")), sent(setLevel("3", "info")), server(result("3")), at(2, answer("8")),
			from(2, `{"jsonrpc":"2.0","id":8,"method":"logging/setLevel","params":{"level":"error","_meta":{"progressToken":"t"}}}`),
			sent(`{"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"warning","_meta":{"progressToken":4}}}`),
			server(result("4")), at(2, answer("8")),
		}},
		{name: "those behind wait for the first", opts: shared, clients: 2, steps: []step{
			from(0, setLevel("8", "debug")), from(1, setLevel("8", "debug")), sent(setLevel("1", "debug")), at(0), at(1),
			server(result("1")), at(0, answer("8")), at(1, answer("8")), sent(),
		}},
		{name: "a level that the server refuses is none", opts: shared, clients: 2, steps: []step{
			from(0, setLevel("8", "debug")), from(1, setLevel("9", "debug")), sent(setLevel("1", "debug")),
			server(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"m"}}`),
			at(0, `answer 8: {"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"m"}} (-32601)`), at(1),
			sent(setLevel("2", "debug")), server(result("2")), at(1, answer("9")),
		}},
		{name: "one that may have been taken is not taken for granted", opts: multiplex.Options{Shared: true, RequestTimeout: 10 * time.Second}, steps: []step{
			forward(setLevel("8", "info")), sent(setLevel("1", "info")), server(result("1")), got(answer("8")),
			forward(setLevel("9", "debug")), after(10 * time.Second), sent(setLevel("2", "debug"), cancelled("2", timedOut)), discard,
			forward(setLevel("8", "info")), sent(setLevel("3", "info")), server(result("3")), got(answer("8")),
		}},
	})
}

func TestLogMessagesReachWhomTheyConcern(t *testing.T) {
	levels := []step{
		from(0, setLevel("8", "warning")), with("", result("1")), from(1, setLevel("8", "debug")), with("", result("2")), discard,
	}
	runScenarios(t, []scenario{
		{name: "nobody, when it is not known whose they are", opts: shared, clients: 2, steps: []step{
			from(0, callA), discard, server(logged("error", "")), at(0), at(1), dropped(metrics.DroppedUnattributed, 1),
			server(result("1")), at(0, answer(`"a"`)),
		}},
		{name: "who made the request that they came with", opts: shared, clients: 2, attributed: true, steps: append(levels,
			from(0, callA), from(1, callA), discard, with("4", logged("info", "")), with("3", logged("info", "")), with("3", logged("error", "")),
			at(0, delivery(logged("error", ""))), at(1, delivery(logged("info", ""))),
			with("", result("3"), result("4")), discard),
		},
		{name: "all, when all have always been one principal's", opts: shared, clients: 1, steps: []step{
			joins("user-0"), from(1, setLevel("8", "error")), server(result("1")), discard,
			server(logged("info", ""), logged("alert", ""), logged("odd", "")),
			at(0, delivery(logged("info", "")), delivery(logged("alert", "")), delivery(logged("odd", ""))),
			at(1, delivery(logged("alert", "")), delivery(logged("odd", ""))),
			joins("user-1"), leaves(2), server(logged("alert", "")), at(0), at(1), at(2), dropped(metrics.DroppedUnattributed, 1),
		}},
	})
}

func subscribe(id, uri string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"resources/subscribe","params":{"uri":"` + uri + `"}}`
}

func unsubscribe(id, uri string) string {
	return strings.Replace(subscribe(id, uri), "resources/subscribe", "resources/unsubscribe", 1)
}

func TestSubscriptionsAreCounted(t *testing.T) {
	const failed = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"m"}}`
	runScenarios(t, []scenario{
		{name: "the server hears of the first and of the last", opts: shared, clients: 2, steps: []step{
			from(0, subscribe("8", "f:/a")), sent(subscribe("1", "f:/a")), server(result("1")), at(0, answer("8")),
			from(1, subscribe("8", "f:/a"), subscribe("9", "f:/a")), sent(), at(1, answer("8"), answer("9")),
			from(0, unsubscribe("8", "f:/a"), unsubscribe("9", "f:/a")), sent(), at(0, answer("8"), answer("9")),
			from(1, unsubscribe("8", "f:/a")), sent(unsubscribe("6", "f:/a")), server(result("6")), at(1, answer("8")),
		}},
		{name: "those behind wait for the answer to the first", opts: shared, clients: 3, steps: []step{
			from(0, subscribe("8", "f:/a")), from(1, subscribe("8", "f:/a")), from(2, subscribe("8", "f:/b")),
			sent(subscribe("1", "f:/a"), subscribe("3", "f:/b")), server(result("3")), at(0), at(1), at(2, answer("8")),
			server(result("1")), at(0, answer("8")), at(1, answer("8")), sent(),
		}},
		{name: "and ask for themselves if it fails", opts: shared, clients: 2, steps: []step{
			from(0, subscribe("7", "f:/a")), from(1, subscribe("8", "f:/a")), sent(subscribe("1", "f:/a")),
			server(fmt.Sprintf(failed, "1")), at(0, "answer 7: "+fmt.Sprintf(failed, "7")+" (-32002)"),
			sent(subscribe("2", "f:/a")), server(result("2")), at(1, answer("8")),
		}},
		{name: "one that is given up is taken back", opts: shared, steps: []step{
			forward(subscribe("8", "f:/a"), cancelOf("8")), sent(subscribe("1", "f:/a"), cancelOf("1")),
			after(2 * time.Second), got("fail 8: cancelled, final (canceled)"), sent(unsubscribe("2", "f:/a")), server(result("2")),
		}},
		{name: "is bounded for each client", opts: shared, clients: 2, steps: []step{
			func(w *world) {
				for i := range 1025 {
					play(w, []step{from(0, subscribe("8", fmt.Sprint("f:/", i)))})
					if i < 1024 {
						play(w, []step{server(result(fmt.Sprint(i + 1)))})
					}
				}
				lines := w.clients[0].take()
				if last := lines[len(lines)-1]; len(lines) != 1025 || last != "fail 8: too_many_subscriptions, final (-32603)" {
					w.Errorf("the last of %d answers is %s", len(lines), last)
				}
				w.conn.take()
			},
			from(1, subscribe("8", "f:/x")), sent(subscribe("1026", "f:/x")), server(result("1026")), at(1, answer("8")),
		}},
		{name: "what is not a URI, or one that can be read in two ways, is refused here", opts: shared, steps: []step{
			forward(subscribe("8", strings.Repeat("u", 8<<10+1)), subscribe("8", `a","uri":"b`), subscribe("8", `a","URI":"b`),
				`{"jsonrpc":"2.0","id":8,"method":"resources/subscribe"}`),
			sent(), got("fail 8: , final (-32602)", "fail 8: , final (-32602)", "fail 8: , final (-32602)", "fail 8: , final (-32602)"),
			forward(setLevel("8", `debug","Level":"error`)), sent(), got("fail 8: , final (-32602)"),
		}},
	})
}

// Package sharing decides who they are.
func TestUpdatesReachTheSubscribers(t *testing.T) {
	updated := notification("notifications/resources/updated", `{"uri":"f:/a/b"}`)
	runScenarios(t, []scenario{{name: "of what contains it", opts: shared, clients: 2, steps: []step{
		from(0, subscribe("8", "f:/a")), from(1, subscribe("8", "g:/")), server(result("1"), result("2")), discard,
		server(updated), at(0, delivery(updated)), at(1), leaves(0), leaves(1), discard,
	}}, {name: "not of what nobody subscribes to, which may be another principal's", opts: shared, clients: 2, steps: []step{
		from(0, subscribe("8", "g:/a")), from(1, subscribe("8", "g:/b")), server(result("1"), result("2")), discard,
		server(updated), at(0), at(1), leaves(0), leaves(1), discard,
	}}})
}
