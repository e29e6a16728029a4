package diagnosis_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
)

// secondStream serves what gw does, but for the second stream of HTTP+SSE, which has events and ends or not.
func secondStream(gw http.Handler, events string, ends bool) http.Handler {
	var streams atomic.Int32
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Mcp-Session-Id") != "" || streams.Add(1) != 2 {
			gw.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events)
		_ = http.NewResponseController(w).Flush()
		if !ends {
			<-r.Context().Done()
		}
	})
}

// A client that never sends initialize is tried where a gateway does that for it, and nowhere else.
func TestAnnouncement(t *testing.T) {
	t.Parallel()
	const step, call = "HTTP+SSE: mcp-response: ", "HTTP+SSE: a call without initialize: "
	const none = step + "not served: the server initializes no session by itself: each client has to\n"
	const begun = "event: endpoint\ndata: /mcp/1/message\n\nevent: connection\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/connection\"}\n\n"
	sdk := greeter()
	gw := func(o gateway.Options) http.Handler { return newGateway(t, o) }
	for name, test := range map[string]struct {
		h    http.Handler
		want []string
	}{
		"the gateway":     {gw(gateway.Options{}), []string{step + "ok: greeter 1, MCP ", call + "ok: 1 tool\n"}},
		"HTTP+SSE alone":  {gw(gateway.Options{Transports: []gateway.Transport{gateway.TransportSSE}}), []string{step + "ok: greeter 1, MCP ", call + "ok: 1 tool\n"}},
		"a single path":   {gw(gateway.Options{SinglePath: true}), []string{step + "ok: greeter 1, MCP ", call + "ok: 1 tool\n"}},
		"switched off":    {gw(gateway.Options{NoAutoInitialize: true}), []string{"HTTP+SSE: a call: ok", none}},
		"go-sdk":          {mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sdk }, nil), []string{"HTTP+SSE: a call: ok", none}},
		"mcp-go":          {server.NewSSEServer(greeterOfMCPGo(), server.WithSSEEndpoint("/mcp")), []string{"HTTP+SSE: a call: ok", none}},
		"a broken server": {newGatewayTo(t, stdio.Command{Path: "/does/not/exist"}, gateway.Options{Transports: []gateway.Transport{gateway.TransportSSE}}), []string{step + "failed: the server answers with an error: ", "/does/not/exist", " -> run sse-server check --start"}},
		"silence":         {secondStream(gw(gateway.Options{}), begun, false), []string{step + "failed: the gateway announced no session in 3s -> see with sse-server check --start and the options of that gateway"}},
		"an early end":    {secondStream(gw(gateway.Options{}), begun, true), []string{step + "failed: the stream ended before the announcement -> see the log"}},
	} {
		o := diagnosis.Options{URL: serve(t, test.h) + "/mcp"}
		if name == "silence" {
			o.Patience = 3 * time.Second
		}
		got, works := look(t, o)
		if works == strings.Contains(strings.Join(test.want, ""), "failed") {
			t.Errorf("%s: a client can work there: %v", name, works)
		}
		wantLines(t, name+"\n"+got, test.want...)
		if hasCalled := strings.Contains(got, call); hasCalled != strings.Contains(strings.Join(test.want, ""), call) {
			t.Errorf("%s: a call without initialize was made: %v", name, hasCalled)
		}
	}
}
