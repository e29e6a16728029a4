package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// serve runs a gateway behind a real socket until the end of the test.
func serve[O options](t testing.TB, up upstream.Upstream, opts O, mount ...func(http.Handler) http.Handler) (string, *http.Client, *gateway.Gateway) {
	t.Helper()
	g, err := gateway.NewWith(up, settings(opts))
	must(t, err)
	var h http.Handler = g
	for _, m := range mount {
		h = m(h)
	}
	s := httptest.NewServer(h)
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(func() {
		equal(t, "error", <-shutdown(g, time.Minute), nil)
		equal(t, "bytes are held after the end", metric(t, g, "mcp_sse_held_bytes"), 0)
		transport.CloseIdleConnections()
		s.Close()
	})
	return s.URL, &http.Client{Transport: transport}, g
}
