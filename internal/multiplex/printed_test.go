package multiplex_test

import (
	"testing"
	"time"
)

// One object that a server prints alone in a line, with a number, does not end that it is served whose ids are texts.
func TestAServerThatNamesByTextsIsServedAfterAPrintedNumber(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "own session", steps: []step{
			forward(callA), sent(call("1")), server(result(`"1"`)), got(answer(`"a"`)),
			forward(callA, callB), sent(call("2"), call("3")), server(result("2")), got(), // printed
			server(result(`"2"`), result(`"3"`)), got(answer(`"a"`), answer(`"b"`)), // the server's own
			forward(callC), sent(call("4")), server(result(`"4"`)), got(answer(`"c"`)),
		}},
		{name: "shared", opts: shared, clients: 2, steps: []step{
			from(0, callA), sent(call("1")), server(result(`"1"`)), at(0, answer(`"a"`)),
			from(1, callB), from(0, callA), sent(call("2"), call("3")), server(result("2")), at(1),
			server(result(`"2"`), result(`"3"`)), at(1, answer(`"b"`)), at(0, answer(`"a"`)),
			from(0, callC), sent(call("4")), server(result(`"4"`)), at(0, answer(`"c"`)),
		}},
	})
}

// In a shared session a server that gives no ids is served as before, too.
func TestAServerWithoutIDsIsServedAfterAPrintedNumber(t *testing.T) {
	for name, own := range map[string]string{"no ids": noIDResult, "null": nullResult} {
		runScenarios(t, []scenario{{name: name, opts: shared, clients: 2, steps: []step{
			from(0, callA), sent(call("1")), server(own), at(0, answered(`"a"`)),
			from(1, callB), sent(call("2")), server(result("2"), own), at(1, answer(`"b"`)), // printed: known; and the server's own
			from(0, callA), sent(call("3")), server(own), at(0, answered(`"a"`)),
		}}})
	}
}

// In a shared session whose server names calls by numbers, only the right number answers: docs/compatibility.md.
func TestAnUnreadErrorOfAStrangerAnswersNoCallOfAnother(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "printed after the stranger's call", opts: shared, clients: 2, steps: []step{
			from(0, callA), sent(call("1")), server(result("1")), at(0, answer(`"a"`)),
			from(1, callB), sent(call("2")), server(result("2")), at(1, answer(`"b"`)),
			from(0, callC), sent(call("3")),
			server(`{"jsonrpc":"2.0","error":{"code":-32600,"message":"a stranger"}}`), at(0), // no id to guess
			server(result("3")), at(0, answer(`"c"`)),
		}},
	})
}

// A server whose ids match nothing is served as before: what it prints says nothing of how it names its answers.
func TestAServerWithIDsOfItsOwnIsServedAfterAPrintedID(t *testing.T) {
	for _, row := range []struct{ name, own, printed, matchedBy string }{
		{"texts, a number", valued(`"answer"`), result("2"), "id"},
		{"numbers, a text", valued("1000"), result(`"2"`), "string"},
	} {
		runScenarios(t, []scenario{
			{name: row.name, steps: []step{
				forward(callA), sent(call("1")), server(row.own), got(answered(`"a"`)),
				forward(callB), sent(call("2")), server(row.printed, row.own), got(answer(`"b"`)), matched(row.matchedBy, 1),
				forward(callC), sent(call("3")), server(row.own), got(answered(`"c"`)),
			}},
			{name: row.name + ", shared", opts: shared, clients: 2, steps: []step{
				from(0, callA), sent(call("1")), server(row.own), at(0, answered(`"a"`)),
				from(1, callB), sent(call("2")), server(row.printed, row.own), at(1, answer(`"b"`)), matched(row.matchedBy, 1),
				from(0, callC), sent(call("3")), server(row.own), at(0, answered(`"c"`)),
			}},
		})
	}
}

// A server that names its answer to initialize alone does not come to name its calls by what it prints, one number for
// each.
func TestAServerThatNamesInitializeAloneIsServedAfterPrintedNumbers(t *testing.T) {
	introduced := func(w *world) {
		play(w, []step{own("initialize", time.Minute), sent(sentPrefix + "1*"), server(initialized), got("own initialize: *")})
	}
	runScenarios(t, []scenario{
		{name: "shared", opts: shared, clients: 2, steps: []step{
			introduced,
			from(0, callA), sent(call("2")), server(noIDResult), at(0, answered(`"a"`)),
			from(1, callB), sent(call("3")), server(result("3"), noIDResult), at(1, answer(`"b"`)),
			from(1, callB), sent(call("4")), server(result("4"), noIDResult), at(1, answer(`"b"`)),
			from(0, callA), sent(call("5")), server(noIDResult), at(0, answered(`"a"`)),
		}},
	})
}
