package sse_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/metrics"
)

// hiding is a middleware's ResponseWriter that has no Flush of its own.
type hiding struct{ http.ResponseWriter }

// unwrapping is one that at least says what it wraps.
type unwrapping struct{ hiding }

func (w unwrapping) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// flushing is one of the old kind: it flushes, and says not what it wraps.
type flushing struct{ hiding }

func (w flushing) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

func TestMiddleware(t *testing.T) {
	unwrap := func(w http.ResponseWriter) http.ResponseWriter { return unwrapping{hiding{w}} }
	for name, wrap := range map[string]func(http.ResponseWriter) http.ResponseWriter{
		"none":         func(w http.ResponseWriter) http.ResponseWriter { return w },
		"unwrap":       unwrap,
		"unwrap twice": func(w http.ResponseWriter) http.ResponseWriter { return unwrap(unwrap(w)) },
		"flusher only": func(w http.ResponseWriter) http.ResponseWriter { return flushing{hiding{w}} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, config{})
			srv := start(t, f, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrap(w), r) })
			})
			s := attach(t, f, srv.Client(), srv.URL)
			s.works(t)
			s.c.CloseGracefully(metrics.ClosedShutdown, time.Second)
			if _, err := s.rest(); err != nil {
				t.Errorf("the stream ended with %v", err)
			}
		})
	}
}

func TestMiddlewareThatHidesFlush(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, config{log: slog.New(slog.NewTextHandler(&log, nil))})
	w := httptest.NewRecorder()
	f.ServeHTTP(hiding{w}, httptest.NewRequest(http.MethodGet, "/sse", nil))
	e, ok := refusalOf(w.Body.String())
	if w.Code != http.StatusInternalServerError || !ok || !strings.Contains(e.Message, "Unwrap") || !strings.Contains(e.Message, "http.Flusher") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "http.Flusher") {
		t.Errorf("the log says %q", log.String())
	}
	if f.registry.Len() != 0 {
		t.Error("a connection was opened")
	}
	// a POST needs no flush
	w = httptest.NewRecorder()
	f.ServeHTTP(hiding{w}, httptest.NewRequest(http.MethodPost, "/sse/x/message", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("POST: got %d", w.Code)
	}
}
