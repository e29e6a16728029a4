package multiplex_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// Whatever a server does to one client of a session, the other one gets its
// answer, and nothing else.
func TestBadServerHarmsNoOtherClient(t *testing.T) {
	const lostA = `fail "a": session_lost, final (session_lost)`
	both := func(s ...step) []step {
		return append([]step{from(0, callA), from(1, callB), sent(call("1"), call("2"))}, s...)
	}
	fine := []step{at(0), server(result("2")), at(0), at(1, answer(`"b"`))}
	var flood []string
	for i := range 10_000 {
		flood = append(flood, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}`, i))
	}
	tests := map[string][]step{
		"answers twice": {
			server(result("1"), result("1")), at(0, answer(`"a"`)), dropped(metrics.DroppedUnknownResponse, 1),
		},
		"answers what nobody asked": {
			server(result("3"), result("0"), result("-1"), result(`"2"`), result("2.0"), result("1e0")), dropped(metrics.DroppedUnknownResponse, 6),
			server(result("1")), at(0, answer(`"a"`)),
		},
		"answers with null or without an id": {
			server(nullID, noID), dropped(metrics.DroppedUnknownResponse, 2), server(result("1")), at(0, answer(`"a"`)),
		},
		"answers late": {
			after(30 * time.Second), from(1, callC), after(30 * time.Second), at(0, `fail "a": timeout, final (timeout)`),
			at(1, `fail "b": timeout, final (timeout)`), server(result("1")), at(0), dropped(metrics.DroppedUnknownResponse, 1),
			discardSent, server(result("3")), at(1, answer(`"c"`)), from(1, callB), discardSent, server(result("5")), at(1, answer(`"b"`)),
			from(1, callB), discardSent, // for what follows
		},
		"answers with both, and with neither": {
			server(`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}`), at(0, `fail "a": invalid_response, final (invalid_response)`),
			from(0, callA), sent(call("3")), server(`{"jsonrpc":"2.0","id":3}`), at(0, `fail "a": invalid_response, final (invalid_response)`),
		},
		"sends what is no JSON": {
			server("Listening on caller 1", "\x00\xff\xfe", `{"jsonrpc":"2.0","id":1,"resu`, "", "[]", "null", `"x"`), dropped(metrics.DroppedInvalidMessage, 7),
			server(result("1")), at(0, answer(`"a"`)),
		},
		"asks for what nobody said it serves": {
			server(roots), sent(uncertain("7", "roots/list")), server(result("1")), at(0, answer(`"a"`)),
		},
		"floods": {
			server(flood[:1000]...), at(0), dropped(metrics.DroppedUnattributed, 1000), server(result("1")), at(0, answer(`"a"`)),
		},
		"takes back what nobody asked it for": {
			server(cancelOf("1"), cancelOf("2"), cancelOf(`"a"`)), at(0), dropped(metrics.DroppedUnknownRequest, 3), server(result("1")), at(0, answer(`"a"`)),
		},
	}
	for name, steps := range tests {
		wire := "2"
		if name == "answers late" {
			wire = "6"
		}
		last := append([]step{}, fine[0], server(result(wire)), fine[2], fine[3])
		runScenarios(t, []scenario{{name: name, opts: shared, clients: 2, steps: append(both(steps...), last...)}})
	}
	runScenarios(t, []scenario{
		{name: "dies", opts: shared, clients: 2, steps: both(fault(io.ErrUnexpectedEOF), at(0, lostA), at(1, `fail "b": session_lost, final (session_lost)`))},
		{name: "sends 10,000 notifications in a second", opts: multiplex.Options{}, steps: []step{
			forward(callA), sent(call("1")), func(w *world) {
				for i := 0; i < len(flood); i += 500 {
					play(w, []step{server(flood[i : i+500]...), after(50 * time.Millisecond)})
				}
				if n := len(w.clients[0].take()); n != len(flood) {
					w.Errorf("%d of %d notifications arrived", n, len(flood))
				}
			}, server(result("1")), got(answer(`"a"`)),
		}},
	})
}

func discardSent(w *world) { w.conn.take() }

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
