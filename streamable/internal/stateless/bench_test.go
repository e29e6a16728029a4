package stateless_test

import (
	"net/http"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A call and its answer, without HTTP and without the server.
func BenchmarkCall(b *testing.B) {
	for name, capabilities := range map[string]string{"plain": `{}`, "may ask": askAll} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, quiet)
			f.server.serve = func(c *conn, m *jsonrpc.Message) {
				c.got = nil
				c.answer(m, `{"content":[{"type":"text","text":"x"}]}`)
			}
			a := ask{method: "tools/call", params: toolCall, capabilities: capabilities, info: `{"name":"n","version":"1"}`}
			r := a.request(b.Context())
			m, err := jsonrpc.Parse([]byte(a.message()))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				f.ServePOST(&response{header: make(http.Header)}, r, "", m, false)
			}
		})
	}
}
