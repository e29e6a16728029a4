package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Params of a client of MCP 2026-07-28 reach a server of that version byte for byte, and
// so do results the client, whether they are complete or ask for input.
func TestStatelessClientBeforeAStatelessServer(t *testing.T) {
	const complete = `{"resultType":"complete","tools":[{"name":"t" , "inputSchema":{}}],"n":9007199254740993,"x":{"b":1.50, "a":"\u00e9"}}`
	const asks = `{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url", "url":"u"}}},"requestState":"st\u0061te"}`
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28", "io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"x":1e3},"vendor/x":1.0}`
	for _, sessions := range []gateway.Sessions{gateway.SessionsPerConnection, gateway.SessionsShared} {
		var sent, result string // what the server got, and answers
		g, err := gateway.New(upstream.HTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			m, err := jsonrpc.Parse(body)
			if err != nil {
				t.Errorf("the server got %s: %v", body, err)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			if m.Method == "server/discover" {
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"prompts":{}},"resultType":"complete"}}`, m.ID)
				return
			}
			sent = string(m.Params())
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		})), gateway.Options{Sessions: sessions})
		must(t, err)
		for _, call := range []struct{ method, name, params, result string }{
			{"vendor/x", "", `{` + meta + `}`, complete},
			{"tools/list", "", `{` + meta + `,"cursor" : "c"}`, complete},
			{"tools/call", "t", `{"name":"t", "arguments":{"n":9007199254740993,"x":[1.50, "\u0061"]},` + meta + `,"extra":{}}`, complete},
			{"prompts/get", "p", `{"name":"p",` + meta + `}`, asks},
			{"prompts/get", "p", `{"inputResponses":{"k":{"action" : "accept"}},"requestState":"st\u0061te","name":"p",` + meta + `}`, complete},
			{"vendor/x", "", `{` + meta + `}`, `{}`}, // of a server with sessions, as the next one may be
		} {
			result = call.result
			r := ssetest.Request(t.Context(), http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":"a","method":"`+call.method+`","params":`+call.params+`}`,
				"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", call.method, "Mcp-Name", call.name)
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			want := `{"jsonrpc":"2.0","id":"a","result":` + result + `}`
			if result == `{}` {
				want = `{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"handler.invalid","version":"unknown"}}}}`
			}
			equal(t, "the client got", w.Body.String(), want)
			equal(t, "the server got", sent, call.params)
		}
		equal(t, "Shutdown", g.Shutdown(t.Context()), nil)
	}
}
