package sse_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/sse"
)

// ask sends a request to a handler, and ends a stream that it opens at once; header as
// name, value.
func ask(h http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, ssetest.Request(ctx, method, target, body, header...))
	return w
}

// isRefusal reports whether a body is a JSON-RPC error for no request.
func isRefusal(body string) bool {
	return strings.HasPrefix(body, `{"jsonrpc":"2.0","id":null,"error":{"code":-3`) && strings.Contains(body, `"message":"`)
}

// The checks of package internal/httpcheck come first, and what a request is refused for is counted.
func TestRefusals(t *testing.T) {
	authenticate, err := auth.BearerTokens(map[string]string{"token": "someone"})
	ssetest.Must(t, err)
	const message = "/sse/0d9f3a52-7a0f-4f6e-8f0a-5f3c2b1a0e77/message"
	for _, test := range []struct {
		method, target string
		header         []string
		status         int
		allow, reason  string
	}{
		{"GET", "/sse", []string{"Authorization", "wrong"}, 401, "", "auth"},
		{"POST", message, []string{"Authorization", "wrong"}, 401, "", "auth"},
		{"GET", "/sse", []string{"Origin", "http://evil.example"}, 403, "", "origin"},
		{"POST", message, []string{"Origin", "http://evil.example"}, 403, "", "origin"},
		{"POST", message, nil, 404, "", "unknown_connection"},
		{"POST", "/sse//message", nil, 405, "GET", "method"},
		{"POST", "/sse", nil, 405, "GET", "method"}, // how newer clients look for Streamable HTTP
		{"DELETE", "/sse", nil, 405, "GET", "method"},
		{"HEAD", "/sse", nil, 405, "GET", "method"},
		{"OPTIONS", "/sse", nil, 405, "GET", "method"},
		{"GET", message, nil, 405, "POST", "method"},
		{"POST", "/one", nil, 405, "GET", "method"}, // the path of a single path
		{"POST", "/one?connectionId=%zz&;", nil, 405, "GET", "method"},
		{"POST", "/one?connectionId=unknown", nil, 404, "", "unknown_connection"},
		{"DELETE", "/one?connectionId=unknown", nil, 405, "POST", "method"},
		{"GET", "/sse?event=heartbeat", nil, 400, "", "bad_request"},
		{"GET", "/sse?event=message%0A", nil, 400, "", "bad_request"},
		{"GET", "/sse?event=message&auto=2", nil, 400, "", "bad_request"},
	} {
		f := newFixture(t, config{sse: sse.Options{Options: httpcheck.Options{Authenticate: authenticate}, SinglePath: strings.HasPrefix(test.target, "/one")}})
		w := ask(f, test.method, test.target, "", append([]string{"Authorization", "Bearer token"}, test.header...)...)
		if w.Code != test.status || w.Header().Get("Allow") != test.allow || !isRefusal(w.Body.String()) {
			t.Errorf("%s %s %q: got %d, Allow %q, %s, want %d, %q", test.method, test.target, test.header,
				w.Code, w.Header().Get("Allow"), w.Body, test.status, test.allow)
		}
		series := "mcp_sse_connections_rejected_total"
		if test.method == http.MethodPost {
			series = "mcp_sse_posts_rejected_total"
		}
		if f.count(t, series, test.reason) != 1 || f.registry.Len() != 0 {
			t.Errorf("%s %s %q: not counted under %s, or a connection was opened", test.method, test.target, test.header, test.reason)
		}
	}
}

// A budget that others use up refuses new requests, large bodies and new connections,
// and lets the rest pass.
func TestBudgetIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := budget.New(1<<20, nil)
		f := newFixture(t, config{conn: connstate.Options{Budget: account}})
		g := f.open(t, "/sse")
		synctest.Wait()
		try := func(body string, want int) {
			t.Helper()
			if w := f.message(g, body); w.Code != want || want == 503 && !strings.Contains(w.Body.String(), `"server_busy"`) {
				t.Errorf("%.60s: got %d %s, want %d", body, w.Code, w.Body, want)
			}
		}
		long := `{"jsonrpc":"2.0","id":1,"result":{"x":"` + strings.Repeat("x", 20_000) + `"}}`
		try(long, 202)
		account.ForceReserve(1<<20 - 4000)
		try(long, 503)
		try(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, 202)
		account.ForceReserve(4000)
		try(`{"jsonrpc":"2.0","id":2,"method":"ping"}`, 503)
		try(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, 202)
		try(`{"jsonrpc":"2.0","id":3,"result":{}}`, 202)
		if w := ask(f, http.MethodGet, "/sse", ""); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("a new connection: got %d", w.Code)
		}
		account.Release(1 << 20)
		try(`{"jsonrpc":"2.0","id":2,"method":"ping"}`, 202)
		g.leave()
		synctest.Wait()
		if account.ForceReserve(1<<20 - 1); account.Full() {
			t.Error("bytes are lost")
		}
	})
}

// A middleware's ResponseWriter that has no Flush of its own.
type hiding struct{ http.ResponseWriter }

// unwrapping is one that at least says what it wraps.
type unwrapping struct{ hiding }

func (w unwrapping) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// flushing is one of the old kind: it flushes, and says not what it wraps.
type flushing struct{ hiding }

func (w flushing) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

func TestMiddleware(t *testing.T) {
	for name, wrap := range map[string]func(http.ResponseWriter) http.ResponseWriter{
		"unwrap twice": func(w http.ResponseWriter) http.ResponseWriter { return unwrapping{hiding{unwrapping{hiding{w}}}} },
		"flusher only": func(w http.ResponseWriter) http.ResponseWriter { return flushing{hiding{w}} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, config{})
			srv := start(t, f, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrap(w), r) })
			})
			attach(t, f, srv.Client(), srv.URL).works(t)
		})
	}
	var log bytes.Buffer
	f := newFixture(t, config{log: slog.New(slog.NewTextHandler(&log, nil))})
	w := httptest.NewRecorder()
	f.ServeHTTP(hiding{w}, httptest.NewRequest(http.MethodGet, "/sse", nil))
	if w.Code != http.StatusInternalServerError || !isRefusal(w.Body.String()) || !strings.Contains(w.Body.String(), "Unwrap") ||
		!strings.Contains(log.String(), "http.Flusher") || f.registry.Len() != 0 {
		t.Errorf("without Flush and Unwrap: got %d %s, and the log\n%s", w.Code, w.Body, &log)
	}
}
