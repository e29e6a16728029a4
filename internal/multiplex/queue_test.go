package multiplex_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
)

const full = `fail "c": queue_full, retryable (busy)`

func numbered(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`, id)
}

// Clients of one principal share its turns.
func TestTurnsGoByPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multiplex.Options{Shared: true, MaxInFlight: 1}, 1)
		w.attach("user-0") // as the first client
		w.attach("other")
		play(w, []step{from(0, numbered(1), numbered(2), numbered(3)), from(1, numbered(1), numbered(2)), from(2, numbered(1), numbered(2)), sent(call("1"))})
		now := "1"
		for _, next := range []string{"2", "6", "4", "7", "3", "5"} {
			play(w, []step{server(result(now)), sent(call(next))})
			now = next
		}
		play(w, []step{server(result(now)), func(w *world) {
			for _, c := range w.clients {
				c.take()
			}
		}})
		w.finish()
	})
}

// Waiting is in order, bounded and timed.
func TestQueueIsBounded(t *testing.T) {
	one := multiplex.Options{MaxInFlight: 1, MaxWaiting: 1, RequestTimeout: 10 * time.Second}
	huge := func(id string) string {
		return `{"jsonrpc":"2.0","id":"` + id + `","method":"x","params":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`
	}
	runScenarios(t, []scenario{
		{name: "in number", opts: one, steps: []step{
			forward(callA, callB, callC), sent(call("1")), got(full),
			server(result("1")), got(answer(`"a"`)), sent(call("2")), forward(callC), server(result("2")),
			got(answer(`"b"`)), sent(call("4")), server(result("4")), got(answer(`"c"`)),
		}},
		{name: "in bytes, but one that is large waits alone", opts: multiplex.Options{MaxInFlight: 1}, steps: []step{
			forward(callA, huge("h"), huge("c"), callB), sent(call("1")), got(full),
			forward(cancelOf(`"h"`)), got(`fail "h": cancelled, retryable (canceled)`),
			forward(huge("c")), got(), forward(cancelOf(`"c"`)), got(`fail "c": cancelled, retryable (canceled)`),
			server(result("1")), got(answer(`"a"`)), sent(call("4")), server(result("4")), got(answer(`"b"`)),
		}},
		{name: "and nobody keeps another out of it", opts: multiplex.Options{Shared: true, MaxInFlight: 1, MaxWaiting: 3}, clients: 2, steps: []step{
			from(0, numbered(1), numbered(2), numbered(3), numbered(4)), sent(call("1")), from(0, numbered(5)), at(0, "fail 5: queue_full, retryable (busy)"),
			from(1, numbered(1)), at(0, "fail 4: queue_full, retryable (busy)"), at(1),
			server(result("1")), at(0, answer("1")), sent(call("2")), server(result("2")), at(0, answer("2")), sent(call("6")),
			server(result("6")), at(1, answer("1")), sent(call("3")), server(result("3")), at(0, answer("3")),
		}},
		{name: "in time", opts: one, steps: []step{
			forward(callA), after(time.Second), forward(callB), after(9 * time.Second), got(`fail "a": timeout, final (timeout)`),
			sent(call("1"), cancelled("1", timedOut), call("2")), forward(callC), after(time.Second),
			got(`fail "b": timeout, final (timeout)`), sent(cancelled("2", timedOut), call("4")), server(result("4")), got(answer(`"c"`)),
		}},
		{name: "for turns at a subscription too", opts: multiplex.Options{Shared: true, MaxWaiting: 1}, clients: 3, steps: []step{
			from(0, subscribe("8", "f:/a")), from(1, subscribe("8", "f:/a")), from(2, subscribe("8", "f:/a")), sent(subscribe("1", "f:/a")),
			at(2, "fail 8: queue_full, retryable (busy)"), server(result("1")), at(0, answer("8")), at(1, answer("8")),
		}},
	})
}
