package stateless_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/stateless"
	"github.com/mcp-sse/mcp-sse/upstream/remote"
)

// BenchmarkStatelessCall is one call after the other to a handler that answers at
// once: what the translation, net/http's client and the handler's own reading
// cost.
func BenchmarkStatelessCall(b *testing.B) {
	result := json.RawMessage(`{"resultType":"complete","content":[{"type":"text","text":"hello"}]}`)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := jsonrpc.Parse(body)
		if err != nil {
			b.Error(err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(jsonrpc.NewResult(m.ID, result))
	})
	conn := stateless.NewModern("http://handler.invalid/", discovered, remote.HTTPHandler(handler).(remote.URL).Client, slog.New(slog.DiscardHandler))
	b.Cleanup(func() { _ = conn.Close() })
	call := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"_meta":{"progressToken":1}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := conn.Send(call); err != nil {
			b.Fatal(err)
		}
		if _, err := conn.Recv(); err != nil {
			b.Fatal(err)
		}
	}
}
