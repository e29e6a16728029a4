package multiplex_test

import (
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/multiplex"
)

// The acceptance of shared sessions, a to e.

func TestFourParallelRequestsComplete(t *testing.T) {
	runScenarios(t, []scenario{{name: "of four clients", opts: shared, clients: 4, steps: []step{
		from(0, callA), from(1, callA), from(2, callA), from(3, callA), sent(call("1"), call("2"), call("3"), call("4")),
		server(result("2"), result("4"), result("1"), result("3")),
		at(0, answer(`"a"`)), at(1, answer(`"a"`)), at(2, answer(`"a"`)), at(3, answer(`"a"`)),
	}}})
}

func TestTimeoutOfOneAffectsNoOther(t *testing.T) {
	runScenarios(t, []scenario{{name: "of three", opts: multiplex.Options{Shared: true, RequestTimeout: 10 * time.Second}, clients: 3, steps: []step{
		from(0, callA), after(time.Second), from(1, callA), from(2, callA), discard, after(9 * time.Second),
		at(0, `fail "a": timeout, final (timeout)`), sent(cancelled("1", timedOut)), at(1), at(2),
		server(result("3"), result("2")), at(0), at(1, answer(`"a"`)), at(2, answer(`"a"`)),
	}}})
}

func TestAnswersWithoutIDsCompleteInOrderWhenSerialized(t *testing.T) {
	runScenarios(t, []scenario{{name: "three", opts: multiplex.Options{MaxInFlight: 1}, steps: []step{
		forward(callA, callB, callC), sent(call("1")),
		server(`{"jsonrpc":"2.0","id":null,"result":{"n":1}}`), got(`answer "a": {"jsonrpc":"2.0","id":"a","result":{"n":1}}`), sent(call("2")),
		server(`{"jsonrpc":"2.0","id":null,"result":{"n":2}}`), got(`answer "b": {"jsonrpc":"2.0","id":"b","result":{"n":2}}`), sent(call("3")),
		server(`{"jsonrpc":"2.0","id":null,"result":{"n":3}}`), got(`answer "c": {"jsonrpc":"2.0","id":"c","result":{"n":3}}`),
	}}})
}
