//lint:file-ignore SA1019 SEP-2577 deprecates sampling, roots and logging; clients and servers use them as long as they exist.

package mcpgo_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/mcpgo"
)

// side is one of two ways to serve everything.
type side struct {
	name   string
	url    string // of the stream
	client *http.Client
	server *everything
}

// theirs serves with mcp-go's own SSE server.
func theirs(t testing.TB) side {
	t.Helper()
	e := newEverything(t)
	return side{"theirs", listen(t, server.NewSSEServer(e.MCPServer, server.WithSSEContextFunc(tenantOf)), func() {}), httpClient(t), e}
}

// ours serves with this package.
func ours(t testing.TB) side {
	t.Helper()
	e := newEverything(t)
	// On a busy machine the client's initialize may come after the gateway's own.
	plain := mcpgo.WithGatewayOptions(gateway.Options{NoAutoInitialize: true})
	h := mcpgo.NewSSEServer(e.MCPServer, mcpgo.WithSSEContextFunc(tenantOf), plain)
	return side{"ours", listen(t, h, func() { shutdown(t, h) }), httpClient(t), e}
}

func listen(t testing.TB, h http.Handler, end func()) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		end()
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL + "/sse"
}

func httpClient(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// step is a message to send, and a text in what the client then gets or the server sees.
type step struct{ send, gets, sees string }

func call(id, tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}

// The same messages lead to the same messages and to the same calls of handlers, hooks and
// middleware as with mcp-go's own SSE server. By design, or because of a fault there:
//
//   - The gateway sends the events connection and mcp-response too.
//   - It answers ping itself, and server/discover: MCP 2026-07-28 has no HTTP+SSE.
//   - It gives large numbers in ids and progress tokens back as they were.
//   - Only it passes requests of the server to the client, and keeps subscriptions.
//
// Such rows have differs, a text that the log of this package's side has, and theirs not.
func TestFeatures(t *testing.T) {
	const all = `{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}`
	for _, test := range []struct {
		name    string
		steps   []step
		differs string
	}{
		{name: "tools/call", steps: []step{{send: call("1", "echo", `{"text":"<hé\u2028\n\"\\>"}`), gets: `"id":1`}}},
		{name: "tool fails", steps: []step{{send: call("1", "fail", `{}`), gets: `broken`}}},
		{name: "tool panics", steps: []step{{send: call("1", "panic", `{}`), gets: `internal panic: boom`}}},
		{name: "unknown tool", steps: []step{{send: call("1", "nosuch", `{}`), gets: `"id":1`}}},
		{name: "ids", steps: []step{
			{send: call(`"a"`, "echo", `{}`), gets: `"id":"a"`},
			{send: call("-5", "echo", `{}`), gets: `"id":-5`},
		}},
		{name: "large id", differs: `"id":9007199254740993,`, steps: []step{
			{send: call("9007199254740993", "echo", `{}`), gets: `"id":900719925474099`},
		}},
		{name: "progress", steps: []step{
			{send: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","_meta":{"progressToken":"tok"}}}`, gets: `"id":1`},
			{gets: `"progress":2`},
		}},
		{name: "large progress token", differs: `"progressToken":9007199254740993`, steps: []step{
			{send: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","_meta":{"progressToken":9007199254740993}}}`, gets: `"id":1`},
			{gets: `"progress":2`},
		}},
		{name: "logging at error", steps: []step{{send: call("1", "log", `{}`), gets: `"id":1`}, {gets: "at error"}}},
		{name: "logging at info", steps: []step{
			{send: `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`, gets: `"id":1`},
			{send: call("2", "log", `{}`), gets: `"id":2`}, {gets: "at info"}, {gets: "at error"},
		}},
		{name: "notifications of the client", steps: []step{
			{send: `{"jsonrpc":"2.0","method":"notifications/custom","params":{"n":1,"text":"x"}}`, sees: "notifications/custom"},
			{send: `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, sees: "roots/list_changed"},
			{send: `{"jsonrpc":"2.0","method":"notifications/unknown"}`},
		}},
		{name: "list_changed", steps: []step{
			{send: call("1", "addtool", `{}`), gets: `"id":1`}, {gets: "tools/list_changed"},
			{send: call("2", "added", `{}`), gets: `"id":2`},
		}},
		{name: "session tools", steps: []step{
			{send: call("1", "addsessiontool", `{}`), gets: `"id":1`}, {gets: "tools/list_changed"},
			{send: call("2", "mine", `{}`), gets: "only mine"},
			{send: `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, gets: `"id":3`},
		}},
		{name: "session resources", steps: []step{
			{send: call("1", "addsessionresources", `{}`), gets: `"id":1`}, {gets: "resources/list_changed"}, {gets: "resources/list_changed"},
			{send: `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"test://mine"}}`, gets: `"id":2`},
			{send: `{"jsonrpc":"2.0","id":3,"method":"resources/list"}`, gets: `"id":3`},
			{send: `{"jsonrpc":"2.0","id":4,"method":"resources/templates/list"}`, gets: `"id":4`},
			{send: `{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"mine://5"}}`, gets: `"id":5`},
		}},
		{name: "subscriptions", differs: "subscribed to [test://a], a: true", steps: []step{
			{send: `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://a"}}`, gets: `"id":1`},
			{send: call("2", "update", `{}`), gets: `"id":2`}, {gets: "resources/updated"},
			{send: `{"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"test://a"}}`, gets: `"id":3`},
		}},
		{name: "ping", differs: "no ping at the server", steps: []step{{send: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, gets: `"id":1`}}},
		{name: "the HTTP request", steps: []step{{send: call("1", "who", `{}`), gets: "tenant acme"}}},
		{name: "cancelled by the client", steps: []step{
			{send: call("1", "wait", `{}`), sees: "waits"},
			{send: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, sees: "wait ends: context canceled"},
			{sees: "error tools/call"}, // mcp-go answers then, the gateway does not
		}},
		{name: "sampling", differs: "m1 says", steps: []step{
			{send: call("1", "sample", `{}`), gets: `"id"`},
			{send: `{"jsonrpc":"2.0","id":ASKED,"result":{"role":"assistant","model":"m1","content":{"type":"text","text":"4"}}}`, gets: `"id":1`},
		}},
		{name: "elicitation", differs: "accept map[name:Ada]", steps: []step{
			{send: call("1", "elicit", `{}`), gets: `"id"`},
			{send: `{"jsonrpc":"2.0","id":ASKED,"result":{"action":"accept","content":{"name":"Ada"}}}`, gets: `"id":1`},
		}},
		{name: "roots", differs: "file:///work", steps: []step{
			{send: call("1", "roots", `{}`), gets: `"id"`},
			{send: `{"jsonrpc":"2.0","id":ASKED,"result":{"roots":[{"uri":"file:///work","name":"w"}]}}`, gets: `"id":1`},
		}},
		{name: "the client refuses", differs: "list roots request failed: not now", steps: []step{
			{send: call("1", "roots", `{}`), gets: `"id"`},
			{send: `{"jsonrpc":"2.0","id":ASKED,"error":{"code":-1,"message":"not now"}}`, gets: `"id":1`},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			theirLog, ourLog := play(t, theirs(t), all, test.steps), play(t, ours(t), all, test.steps)
			if test.differs == "" {
				ssetest.WantLines(t, ourLog, theirLog)
				return
			}
			if has(theirLog, test.differs) {
				t.Errorf("mcp-go has %s now, and its row need not differ:\n%s", test.differs, strings.Join(theirLog, "\n"))
			}
			if !has(ourLog, test.differs) {
				t.Errorf("got\n%s\nwant %s; mcp-go's own:\n%s", strings.Join(ourLog, "\n"), test.differs, strings.Join(theirLog, "\n"))
			}
		})
	}
}

func has(log []string, text string) bool {
	return slices.ContainsFunc(log, func(line string) bool { return strings.Contains(line, text) })
}

// play runs the steps with a new client and returns what it got, and what the server saw
// until the client had left.
func play(t *testing.T, s side, capabilities string, steps []step) []string {
	t.Helper()
	c := open(t, s.client, s.url, capabilities, http.Header{"X-Tenant": {"acme"}})
	s.server.saw.Await(1, "notified: notifications/initialized")
	asked, wanted := "", make(map[string]int)
	for _, step := range steps {
		if step.send != "" && (asked != "" || !strings.Contains(step.send, "ASKED")) {
			c.mustSend(t, strings.ReplaceAll(step.send, "ASKED", asked))
		}
		if wanted[step.gets]++; step.gets != "" && c.count(step.gets) < wanted[step.gets] {
			got := c.mustGet(t, step.gets)
			if id, isCall := idOfCall(got); isCall {
				asked = id
			}
		}
		if step.sees != "" {
			s.server.saw.Await(1, step.sees)
		}
	}
	c.Close()
	s.server.saw.Await(1, "unregistered")
	return append(c.observed(), s.server.observed()...)
}

// idOfCall returns the id of a request.
func idOfCall(data string) (string, bool) {
	if !strings.Contains(data, `"method"`) {
		return "", false
	}
	_, rest, ok := strings.Cut(data, `"id":`)
	end := strings.IndexAny(rest, ",}")
	if !ok || end < 0 {
		return "", false
	}
	return rest[:end], true
}

// observed returns the messages that the client got, sorted: mcp-go does not keep the order
// of notifications and answers.
func (s *raw) observed() []string {
	var got []string
	for _, e := range s.events {
		if e.Name == "message" {
			got = append(got, "client got "+e.Data)
		}
	}
	return slices.Sorted(slices.Values(got))
}

// observed returns what the server saw.
func (e *everything) observed() []string {
	seen := e.saw.Lines()
	if !has(seen, "before ping") {
		seen = append(seen, "no ping at the server")
	}
	return seen
}

// A server that no longer waits for the client's answer tells the client.
func TestServerCancelsItsRequest(t *testing.T) {
	s := ours(t)
	c := open(t, s.client, s.url, `{"roots":{}}`, nil)
	c.mustSend(t, call("5", "impatient", "{}"))
	id, _ := idOfCall(c.mustGet(t, `"roots/list"`))
	close(s.server.release)
	got := c.mustGet(t, "notifications/cancelled")
	ssetest.WantText(t, "cancellation", got, `"requestId":`+id)
	c.mustGet(t, "context canceled")
}

// A call of 2026-07-28, which has no requests of servers, makes none.
func TestServerMayNotAskModernCall(t *testing.T) {
	s := ours(t)
	c := open(t, s.client, s.url, `{"roots":{}}`, nil)
	c.mustSend(t, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"impatient","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}`)
	ssetest.WantText(t, "answer", c.mustGet(t, `"id":5`), "not supported in protocol version 2026-07-28")
	close(s.server.release)
}

// Several clients at a time see only their own.
func TestClientsAreApart(t *testing.T) {
	s := ours(t)
	a, b := open(t, s.client, s.url, "{}", nil), open(t, s.client, s.url, "{}", nil)
	a.mustSend(t, call("5", "addsessiontool", "{}"))
	a.mustGet(t, `"id":5`)
	b.mustSend(t, call("5", "mine", "{}"))
	ssetest.WantText(t, "b called the tool of a", b.mustGet(t, `"id":5`), `"error"`)
	if b.count("list_changed") > 0 || a.count("list_changed") == 0 {
		t.Error("the notification for a reached b, or did not reach a")
	}
}
