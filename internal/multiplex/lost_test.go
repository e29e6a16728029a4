package multiplex_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	tools    = `{"jsonrpc":"2.0","id":"t","method":"tools/list"}`
	toolsB   = `{"jsonrpc":"2.0","id":"t","method":"tools/list","params":{"cursor":"b"}}`
	listHead = `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"other"},{"name":"x","annotations":{%s}}]}}`
)

// listed has the server list its tools, x with the annotations.
func listed(request, id, annotations string) step {
	return func(w *world) {
		play(w, []step{
			forward(request), func(w *world) { w.conn.take() },
			server(fmt.Sprintf(listHead, id, annotations)), func(w *world) { w.clients[0].take() },
		})
	}
}

// A lost session returns only requests that may be repeated without changing
// anything.
func TestLost(t *testing.T) {
	sentAny := func(w *world) { w.conn.take() }
	notTaken := func(id jsonrpc.ID) step { return fault(&jsonrpc.NotTakenError{ID: id, Err: io.EOF}) }
	runScenarios(t, []scenario{
		{name: "lists and reads", steps: []step{
			forward(listA, callB), sentAny, fault(io.EOF), got("lost "+listA, `fail "b": session_lost, final (session_lost)`),
		}},
		{name: "what was not sent", opts: multiplex.Options{MaxInFlight: 1}, steps: []step{
			forward(callA, callB), sentAny, fault(io.EOF), got(`fail "a": session_lost, final (session_lost)`, "lost "+callB),
		}},
		{name: "what the server has not taken, and no other", attributed: true, steps: []step{
			forward(callA, callB), sentAny, notTaken("2"), got(`fail "a": session_lost, final (session_lost)`, "lost "+callB),
		}},
		{name: "nothing that is over", attributed: true, steps: []step{
			forward(callA, callB), server(result("1")), sentAny, notTaken("1"), got(answer(`"a"`), `fail "b": session_lost, final (session_lost)`),
		}},
		{name: "a message that was not taken is no request", attributed: true, steps: []step{
			forward(callA), sentAny, notTaken(""), got(`fail "a": session_lost, final (session_lost)`),
		}},
		{name: "not what the client has taken back, though the server has not taken it", attributed: true, steps: []step{
			forward(callA, cancelOf(`"a"`)), sentAny, notTaken("1"), got(`fail "a": session_lost, retryable (session_lost)`),
		}},
		{name: "not what the client has taken back", steps: []step{
			forward(listA, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`), sentAny,
			fault(io.EOF), got(`fail "a": session_lost, retryable (session_lost)`),
		}},
		{name: "tools that only read", steps: []step{
			listed(tools, "1", `"readOnlyHint":true`), forward(callA), sentAny, fault(io.EOF), got("lost " + callA),
		}},
		{name: "tools that may be called twice", steps: []step{
			listed(tools, "1", `"readOnlyHint":false,"idempotentHint":true`), forward(callA), sentAny, fault(io.EOF), got("lost " + callA),
		}},
		{name: "no other tools", steps: []step{
			listed(tools, "1", `"destructiveHint":false`), forward(callA), sentAny, fault(io.EOF),
			got(`fail "a": session_lost, final (session_lost)`),
		}},
		{name: "a new list counts alone", steps: []step{
			listed(tools, "1", `"readOnlyHint":true`),
			forward(tools), sentAny, server(`{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`), func(w *world) { w.clients[0].take() },
			forward(callA), sentAny, fault(io.EOF), got(`fail "a": session_lost, final (session_lost)`),
		}},
		{name: "a later page adds to a list, and corrects it; errors say so too", opts: multiplex.Options{RequestTimeout: time.Second}, steps: []step{
			listed(tools, "1", `"readOnlyHint":true`), forward(toolsB), server(`{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"y"}]}}`), discard,
			forward(callA), after(time.Second), sentAny, got(`fail "a": timeout, retryable (timeout)`),
			listed(toolsB, "4", ""), forward(callA), after(time.Second), sentAny, got(`fail "a": timeout, final (timeout)`),
		}},
	})
}

// A session that is retired gives back the request that the server has not taken, whatever it is, and answers the others.
func TestRetired(t *testing.T) {
	sentAny := func(w *world) { w.conn.take() }
	retired := func(id jsonrpc.ID) step {
		return func(w *world) { w.conn.in <- incoming{related: id, retires: true, err: io.EOF} }
	}
	runScenarios(t, []scenario{
		{name: "a list, and a call that goes on", attributed: true, steps: []step{
			forward(listA, callB), sentAny, retired("1"), got("lost " + listA), server(result("2")), got(answer(`"b"`)),
		}},
		{name: "a call", attributed: true, steps: []step{
			forward(callA, callB), sentAny, retired("2"), got("lost " + callB), server(result("1")), got(answer(`"a"`)),
		}},
		{name: "several", attributed: true, steps: []step{
			forward(listA, callB), sentAny, retired("1"), retired("2"), got("lost "+listA, "lost "+callB),
		}},
		{name: "one that is answered", attributed: true, steps: []step{
			forward(callA), sentAny, server(result("1")), retired("1"), got(answer(`"a"`)),
		}},
		{name: "what waits for the one that is given back", attributed: true, opts: multiplex.Options{MaxInFlight: 1}, steps: []step{
			forward(listA, callB), sentAny, retired("1"), got("lost " + listA), sentAny, server(result("2")), got(answer(`"b"`)),
		}},
	})
}

// Of all that could be made again at most 8 MiB are kept.
func TestWhatIsKeptIsBoundedInBytes(t *testing.T) {
	const size, many = 60 << 10, 200
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multiplex.Options{}, 1)
		pad := strings.Repeat("x", size)
		for i := range many {
			forward(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{"x":"%s"}}`, i, pad))(w)
		}
		play(w, []step{func(w *world) { w.conn.take() }, fault(io.EOF)})
		kept := 0
		for _, line := range w.clients[0].take() {
			if strings.HasPrefix(line, "lost ") {
				kept++
			}
		}
		if bytes := kept * size; bytes > 8<<20 || bytes < 7<<20 {
			t.Errorf("%d of %d requests were kept, %d bytes, want about 8 MiB", kept, many, bytes)
		}
		w.finish()
	})
}

// Sessions with one server share what they know of its tools.
func TestToolsAreSharedBetweenSessions(t *testing.T) {
	known := &multiplex.Tools{}
	call := parse(t, callA)
	if known.Safe(call) || !known.Safe(parse(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)) {
		t.Error("nothing but reads is safe from the start")
	}
	runScenarios(t, []scenario{{name: "one learns", opts: multiplex.Options{Tools: known}, steps: []step{
		listed(tools, "1", `"readOnlyHint":true`),
	}}})
	if !known.Safe(call) {
		t.Error("a tool that the server has annotated is not safe")
	}
	for _, unsafe := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"y","name":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["x"]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/cancel","params":{"name":"x"}}`,
	} {
		if known.Safe(parse(t, unsafe)) {
			t.Errorf("%s counts as safe", unsafe)
		}
	}
}

func TestKnownToolsAreBounded(t *testing.T) {
	known := &multiplex.Tools{}
	list := func(n int, name string) step {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, `{"name":"%s-%d","annotations":{"readOnlyHint":true}},`, name, i)
		}
		return func(w *world) {
			play(w, []step{forward(tools), func(w *world) { w.conn.take() }, func(w *world) {
				w.conn.in <- incoming{data: []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + strings.TrimSuffix(all.String(), ",") + `]}}`)}
			}, func(w *world) { w.clients[0].take() }})
		}
	}
	safe := func(name string) bool {
		return known.Safe(parse(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`"}}`))
	}
	runScenarios(t, []scenario{{name: "by number", opts: multiplex.Options{Tools: known}, steps: []step{list(5000, "n")}}})
	if !safe("n-4095") || safe("n-4096") {
		t.Error("the names are not bounded at 4096")
	}
	long := strings.Repeat("x", 64<<10)
	runScenarios(t, []scenario{{name: "by bytes", opts: multiplex.Options{Tools: known}, steps: []step{list(6, long)}}})
	if !safe(long+"-2") || safe(long+"-5") || safe("n-1") {
		t.Error("the names are not bounded at 256 KiB, or the old ones count still")
	}
}

// relayConn is a fakeConn in front of sessions with other servers.
type relayConn struct{ *fakeConn }

func (c relayConn) Push(func(msg []byte, err error)) { panic("PushFor is there") }

func (c relayConn) PushFor(receive func(msg []byte, request jsonrpc.ID, err error)) {
	go func() { // ends with the Conn
		for {
			msg, err := c.Recv()
			receive(msg, "", err)
			if err != nil {
				return
			}
		}
	}()
}

func (c relayConn) SendRequest(m *jsonrpc.Message, number int64) error {
	return c.Send(m.Renumbered(jsonrpc.NumberID(number)))
}

// Over a Relay a name may lead two clients to two servers: what one has listed does not let a call of the other be
// repeated. The size of the list is known all the same.
func TestSessionsOverARelayLearnByThemselves(t *testing.T) {
	known := &multiplex.Tools{}
	for _, c := range []struct {
		learns step
		want   string
	}{
		{listed(tools, "1", `"readOnlyHint":true`), "lost " + callA},
		{func(*world) {}, `fail "a": session_lost, final (session_lost)`},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{TB: t, conn: newFakeConn(), metrics: prometheus.NewRegistry()}
			w.open(relayConn{w.conn}, multiplex.Options{Tools: known})
			w.attach("user")
			play(w, []step{c.learns, forward(callA), func(w *world) { w.conn.take() }, fault(io.EOF), got(c.want)})
			w.finish()
		})
	}
	if known.Safe(parse(t, callA)) || known.List() == nil {
		t.Errorf("got safe %t, list %v", known.Safe(parse(t, callA)), known.List())
	}
}
