package multiplex_test

import (
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// printed has the server send messages in a form.
func printed(form wire.Form, msgs ...string) step {
	return func(w *world) {
		for _, m := range msgs {
			w.conn.in <- incoming{data: []byte(m), form: form}
		}
	}
}

// A server may print a text that others wrote. Of the messages that stand beside other text, a session takes the
// response that it waits for, a shared session nothing.
func TestMessagesBesideTextAreTakenIfTheyAreExpected(t *testing.T) {
	const broken = `{"jsonrpc":"2.0","id":3,"result":{"x":NaN}}`
	initialize := func(form wire.Form, version string) step {
		return func(w *world) {
			play(w, []step{own("initialize", time.Minute), sent(sentPrefix + "1*"), printed(form, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"`+version+`"}}`),
				got("own initialize: *")})
		}
	}
	strangers := []string{`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"enter your password"}}`, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		result("4"), result("0"), nullResult, noIDResult, unread, `{"jsonrpc":"2.0","id":2,"method":"x","params":NaN}`, result(`"a"`)}
	// begin has requests 2 and 3 of the first client at the server.
	begin := func(form wire.Form) step {
		return func(w *world) {
			play(w, []step{initialize(form, "2025-11-25"), forward(callA, callB), sent(call("2"), call("3")), printed(form, strangers...), got(), sent()})
		}
	}
	var scenarios []scenario
	for name, form := range map[string]wire.Form{"after a prompt": wire.AfterPrompt, "broken": wire.Broken} {
		scenarios = append(scenarios, scenario{name: name, formed: true, steps: []step{begin(form), printed(form, result("2"), broken, result("2")),
			got(answer(`"a"`), unusable("b")), dropped(metrics.DroppedInvalidMessage, len(strangers)+1)}},
			scenario{name: name + ", in a shared session", formed: true, opts: shared, clients: 2, steps: []step{begin(form), printed(form, result("2"), broken), got(), at(1),
				printed(wire.Plain, result("2"), broken), got(answer(`"a"`), unusable("b")), at(1)}})
	}
	for name, opts := range map[string]multiplex.Options{"in an own session": {}, "in a shared session": shared} {
		for before, form := range map[string]wire.Form{"after words, ": wire.AfterWords, "in a list, ": wire.InList} {
			scenarios = append(scenarios, scenario{name: before + name, formed: true, opts: opts, steps: []step{begin(form),
				printed(form, result("2"), broken, initialized), got(), printed(wire.Plain, result("2"), result("3")), got(answer(`"a"`), answer(`"b"`))}})
		}
		scenarios = append(scenarios, scenario{name: "a batch of a version that has them, " + name, formed: true, opts: opts, steps: []step{initialize(wire.InList, "2025-03-26"),
			forward(callA), sent(call("2")), printed(wire.InList, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, result("2")), gotInAnyOrder(answer(`"a"`),
				`deliver {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)}})
	}
	runScenarios(t, scenarios)
}
