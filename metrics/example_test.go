package metrics_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/metrics"
)

func Example() {
	reg := metrics.NewRegistry()
	m := metrics.New(reg)

	m.ConnectionOpened()
	m.StateChanged("", "initializing")
	m.HandshakeDone(metrics.HandshakeOK, "", "", 3*time.Millisecond)
	m.StateChanged("initializing", "ready")
	m.ConnectionRejected(metrics.RejectedMaxConnections)

	rec := httptest.NewRecorder()
	metrics.Handler(reg).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(rec.Body.String()) {
		if strings.HasPrefix(line, "mcp_sse_connection") && strings.HasSuffix(line, " 1\n") {
			fmt.Print(line)
		}
	}
	// Output:
	// mcp_sse_connection_state{state="ready"} 1
	// mcp_sse_connections 1
	// mcp_sse_connections_opened_total 1
	// mcp_sse_connections_rejected_total{reason="max_connections"} 1
}
