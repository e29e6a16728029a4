package statelessclient_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// FuzzPOST: whatever a client sends, the answer is one JSON-RPC response to its request.
func FuzzPOST(f *testing.F) {
	for _, a := range []ask{
		{method: "tools/list"}, {method: "server/discover", id: `"a"`}, {method: "tools/call", params: toolCall, capabilities: askAll},
		{method: "resources/read", params: `{"uri":"a:b"}`}, {method: "tools/call", params: `{"name":"t","requestState":"x","inputResponses":{"a":{}}}`},
		{method: "prompts/get", params: `{"name":"p","inputResponses":[]}`}, {method: "subscriptions/listen", params: `{"notifications":5}`},
		{method: "tools/list", capabilities: `{"experimental":[],"elicitation":{"url":null}}`, info: `{}`, meta: `,"io.modelcontextprotocol/logLevel":"info"`},
	} {
		r := a.request(f.Context())
		f.Add(a.message(), r.Header.Get("Mcp-Method"), r.Header.Get("Mcp-Name"), "", "")
	}
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":null}}`, "m", "=?base64?", "S", "x")
	f.Fuzz(func(t *testing.T, body, method, name, param, value string) {
		m, why := httpcheck.ParseMessage([]byte(body))
		if why != nil || m.Method == "subscriptions/listen" && strings.Contains(body, "Changed") {
			return // front answers, or the stream has no end
		}
		w := newFixture(t, quiet)
		w.server.tools = `{"tools":[{"name":"t","inputSchema":{"properties":{"s":{"type":"string","x-mcp-header":"S"}}}}]}`
		r := ask{body: body}.request(t.Context())
		r.Header["Mcp-Method"], r.Header["Mcp-Name"] = []string{method}, []string{name}
		r.Header["Mcp-Param-"+http.CanonicalHeaderKey(param)] = []string{value}
		got := newResponse()
		w.ServePOST(got, r, "", m, httpanswer.FormAny)
		if m.Kind == jsonrpc.Notification {
			want(t, "status", got.Code, http.StatusAccepted)
			return
		}
		answer, err := jsonrpc.Parse(got.last())
		if err != nil || answer.Kind != jsonrpc.Response || answer.ID != m.ID {
			t.Fatalf("status %d: %s, %v", got.Code, got.last(), err)
		}
		if got.Code != 200 && answer.Error() == nil {
			t.Fatalf("status %d with a result", got.Code)
		}
	})
}
