package statelessclient_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/streamable/internal/statelessclient"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestDiscover(t *testing.T) {
	f := newFixture(t, statelessclient.Options{})
	r := f.do(t, ask{method: "server/discover", id: `"d"`})
	want(t, "answer", string(r.last()), `{"jsonrpc":"2.0","id":"d","result":{"supportedVersions":["2026-07-28","2025-03-26","2025-06-18","2025-11-25"],`+
		`"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}},`+
		`"instructions":"i","resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}`)
	want(t, "type", r.Header().Get("Content-Type"), "application/json")
}

// A client may prefer a stream for results; errors have their status in any case.
func TestResultsOnAStream(t *testing.T) {
	f := newFixture(t, quiet)
	for method, tc := range map[string]struct {
		status int
		media  string
	}{"tools/list": {200, "text/event-stream"}, "server/discover": {200, "text/event-stream"}, "ping": {404, "application/json"}} {
		r := f.do(t, ask{method: method, header: map[string]string{"Accept": "text/event-stream, application/json"}})
		want(t, method, r.Code, tc.status)
		want(t, method, r.Header().Get("Content-Type"), tc.media)
		want(t, "id", r.member("id"), 1)
	}
}

// A client that takes JSON alone gets it, without what would come before; it cannot listen.
func TestClientsThatTakeNoStream(t *testing.T) {
	f := newFixture(t, quiet)
	f.server.serve = func(c *conn, m *jsonrpc.Message) {
		token := m.Param("_meta", "progressToken").Value
		c.send(m, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+string(token)+`,"progress":1}}`)
		c.answer(m, `{}`)
	}
	noStream := map[string]string{"Accept": "application/json"}
	r := f.do(t, ask{method: "tools/call", params: `{"name":"t"}`, meta: `,"progressToken":"p"`, header: noStream})
	want(t, "type", r.Header().Get("Content-Type"), "application/json")
	want(t, "id", r.member("id"), 1)
	r = f.do(t, ask{method: "subscriptions/listen", params: `{"notifications":{}}`, header: noStream})
	want(t, "status of subscriptions/listen", r.Code, http.StatusNotAcceptable)
}

// A client that takes a stream alone gets the errors of the server on it too.
func TestErrorsOnAStream(t *testing.T) {
	f := newFixture(t, quiet)
	f.server.serve = func(c *conn, m *jsonrpc.Message) { c.fail(m, `{"code":-32000,"message":"m"}`) }
	r := f.do(t, ask{method: "prompts/get", params: `{"name":"p"}`, header: map[string]string{"Accept": "text/event-stream"}})
	want(t, "status", r.Code, http.StatusOK)
	want(t, "type", r.Header().Get("Content-Type"), "text/event-stream")
	want(t, "code", r.member("error", "code"), -32000)
}

// The server sees a client of 2025-11-25 like any other.
func TestServerSeesAClientOf20251125(t *testing.T) {
	f := newFixture(t, quiet)
	f.do(t, ask{method: "tools/call", params: `{"name":"t","arguments":{"b":2,"a":1.50}}`, info: `{"name":"n"}`,
		meta: `,"progressToken":"p","x":1,"io.modelcontextprotocol/logLevel":"info"`})
	got := f.server.connections()[0].received("tools/call", "notification")
	want(t, "messages", got, []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"t","arguments":{"b":2,"a":1.50},"_meta":{"progressToken":"p","x":1}}}`,
	})
}

const serverMeta = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}`

func TestResults(t *testing.T) {
	for _, tc := range []struct{ method, params, result, want string }{
		{"tools/list", `{}`, `{"tools":[]}`, `{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private",` + serverMeta + `}`},
		{"tools/list", `{}`, `{"tools":[],"ttlMs":5,"cacheScope":"public"}`, `{"tools":[],"ttlMs":5,"cacheScope":"public","resultType":"complete",` + serverMeta + `}`},
		{"resources/read", `{"uri":"a:b"}`, `{"contents":[]}`, `{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private",` + serverMeta + `}`},
		{"prompts/get", `{"name":"p"}`, `{"messages":[]}`, `{"messages":[],"resultType":"complete",` + serverMeta + `}`},
		{"completion/complete", `{}`, `{"_meta":{"a":1}}`, `{"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}},"resultType":"complete"}`},
		{"custom/method", `{}`, `{"resultType":"x"}`, `{"resultType":"complete",` + serverMeta + `}`},
	} {
		f := newFixture(t, quiet)
		f.server.tools = ""
		f.server.serve = func(c *conn, m *jsonrpc.Message) { c.answer(m, tc.result) }
		r := f.do(t, ask{method: tc.method, params: tc.params})
		if got := r.member("result"); r.Code != 200 || got != tc.want {
			t.Errorf("%s %s: got %d %s, want %s", tc.method, tc.result, r.Code, r.last(), tc.want)
		}
	}
}

func TestErrorsOfTheServer(t *testing.T) {
	const urls = `{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"https://a","message":"x","elicitationId":"e"}]}}`
	for _, tc := range []struct {
		method, capabilities, err string
		status                    int
		want                      string // the whole answer but its head
	}{
		{"tools/call", `{}`, `{"code":-32601,"message":"m"}`, 404, `"error":{"code":-32601,"message":"m"}}`},
		{"tools/call", `{}`, `{"code":-32602,"message":"m","data":{"a":1.50}}`, 200, `"error":{"code":-32602,"message":"m","data":{"a":1.50}}}`},
		{"tools/call", `{}`, `{"code":-32002,"message":"m"}`, 200, `"error":{"code":-32602,"message":"m"}}`},
		{"tools/call", `{}`, `{"code":0,"message":"m"}`, 200, `"error":{"code":0,"message":"m"}}`},
		{"tools/call", `{}`, `{"code":-32020,"message":"m"}`, 200, `"error":{"code":-32603,"message":"m"}}`},
		{"tools/call", `{}`, `{"code":-32022,"message":"m"}`, 200, `"error":{"code":-32603,"message":"m"}}`},
		{"tools/call", `{}`, `{"code":"x"}`, 200, `"error":{"code":-32603,"message":"the peer answered with an unreadable error"}}`},
		{"tools/call", `{}`, `{"code":-32603,"message":"m","data":{"reason":"missing_capability","requiredCapabilities":{"sampling":{}}}}`, 400,
			`"error":{"code":-32021,"message":"the server needs capabilities that the client has not declared","data":{"requiredCapabilities":{"sampling":{}}}}}`},
		{"tools/call", `{"elicitation":{"url":{}}}`, urls, 200, `"result":{"resultType":"input_required","inputRequests":{"mcp-sse-visit-1":{"method":"elicitation/create",` +
			`"params":{"mode":"url","url":"https://a","message":"x"}}},` + serverMeta + `}}`},
		{"tools/call", `{"elicitation":{}}`, urls, 400, `"error":{"code":-32021,"message":"the server needs capabilities that the client has not declared","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}`},
		{"custom/x", `{"elicitation":{"url":{}}}`, `{"code":-32042,"message":"m"}`, 200, `"error":{"code":-32603,"message":"m"}}`},
	} {
		f := newFixture(t, quiet)
		f.server.serve = func(c *conn, m *jsonrpc.Message) { c.fail(m, tc.err) }
		r := f.do(t, ask{method: tc.method, params: `{"name":"t"}`, capabilities: tc.capabilities})
		if got := string(r.last()); r.Code != tc.status || got != `{"jsonrpc":"2.0","id":1,`+tc.want {
			t.Errorf("%s %s: got %d %s", tc.method, tc.err, r.Code, got)
		}
	}
}

// A person who does not agree to a visit is not asked again: the client gets the text and the addresses as the error of
// its tool, and where it has called none the error of the server.
func TestVisitsThatArePutOff(t *testing.T) {
	const asText = `"content":[{"text":"log in at https://a","type":"text"}],"isError":true,"resultType":"complete"`
	for name, c := range map[string]struct{ method, says, action, want string }{
		"agrees":               {"tools/call", "log in at https://a", "accept", `"result":{"resultType":"input_required"`},
		"declines":             {"tools/call", "log in at https://a", "decline", asText},
		"cancels":              {"tools/call", "log in at https://a", "cancel", asText},
		"a text without it":    {"tools/call", "log in", "decline", strings.Replace(asText, " at ", `\n`, 1)},
		"no tool":              {"prompts/get", "log in at https://a", "decline", `"error":{"code":-32603,"message":"log in at https://a"`},
		"no tool, and cancels": {"prompts/get", "log in at https://a", "cancel", `"error":{"code":-32603,`},
	} {
		f := newFixture(t, quiet)
		f.server.serve = func(conn *conn, m *jsonrpc.Message) {
			mark := `{"name":"t","_meta":{"io.github.mcp-sse/visit":"decline"}}`
			if c.action == "accept" {
				mark = strings.Replace(mark, "decline", "accept", 1)
			}
			want(t, "params that the server gets", string(m.Params()), mark)
			conn.fail(m, `{"code":-32042,"message":"`+c.says+`","data":{"elicitations":[{"mode":"url","url":"https://a","message":"x","elicitationId":"e"}]}}`)
		}
		r := f.do(t, ask{method: c.method, params: `{"name":"t","inputResponses":{"mcp-sse-visit-1":{"action":"` + c.action + `"}}}`, capabilities: `{"elicitation":{"url":{}}}`})
		if got := string(r.last()); r.Code != 200 || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %d %s, want %s", name, r.Code, got, c.want)
		}
	}
}

// A server that does not start: its error reaches the client, and the next request tries
// again.
func TestServerThatDoesNotStart(t *testing.T) {
	f := newFixture(t, quiet)
	f.server.failing = `{"code":-32603,"message":"no such program"}`
	for range 2 {
		r := f.do(t, ask{method: "tools/list"})
		want(t, "status", r.Code, 200)
		want(t, "error", r.member("error", "message"), `"no such program"`)
	}
	want(t, "connections", len(f.server.connections()), 2)
	want(t, "open ones", f.registry.Len(), 0)
}
