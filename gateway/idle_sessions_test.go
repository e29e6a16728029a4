package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// openSession opens a session of Streamable HTTP, and returns the status.
func openSession(g *gateway.Gateway) int {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(initialize("1", "2025-11-25", "{}")))
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	r.Host = "localhost"
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w.Code
}

// P6: a client that opens sessions and never uses them gets no more than the limit allows,
// and they are gone after a minute.
func TestSessionsThatNobodyUses(t *testing.T) {
	const n = 200
	synctest.Test(t, func(t *testing.T) {
		g, err := gateway.NewWith(upstream.Handle(echo), gateway.Settings{Options: gateway.Options{MaxConnections: n, ConnectRate: -1}, MaxSessions: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := g.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
		}()
		openSession(g) // what is made once is not a session's
		time.Sleep(2 * time.Minute)
		before := runtime.NumGoroutine()
		for range n {
			if code := openSession(g); code != http.StatusOK {
				t.Fatalf("a session was refused with %d", code)
			}
		}
		synctest.Wait()
		if code := openSession(g); code != http.StatusServiceUnavailable {
			t.Errorf("one session too many got %d, want 503", code)
		}
		if got := metric(t, g, "mcp_sse_connections"); int(got) != n {
			t.Errorf("%v connections are counted, want %d", got, n)
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if got := metric(t, g, "mcp_sse_connections"); got != 0 {
			t.Errorf("%v sessions are left after a minute", got)
		}
		if now := runtime.NumGoroutine(); now > before+10 {
			t.Errorf("%d goroutines are left of sessions that have expired", now-before)
		}
		if code := openSession(g); code != http.StatusOK {
			t.Errorf("a session after the others have expired got %d", code)
		}
	})
}
