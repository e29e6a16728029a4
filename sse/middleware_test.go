package sse_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
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

// Headers that a middleware has set stay, but for those that would break the
// stream.
func TestMiddlewareHeaders(t *testing.T) {
	f := newFixture(t, config{})
	w := ask(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Strict-Transport-Security": "max-age=1", "Content-Type": "text/html", "Cache-Control": "max-age=60", "Connection": "close",
		} {
			w.Header().Set(name, value)
		}
		f.ServeHTTP(w, r)
	}), "", http.MethodGet, "/sse", nil)
	for name, want := range map[string]string{
		"Strict-Transport-Security": "max-age=1", "Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "Connection": "",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// Each protocol, over sockets: stream, POST, close from either side.
func TestProtocols(t *testing.T) {
	for name, set := range map[string]func(*httptest.Server){
		"HTTP/1.1":     func(s *httptest.Server) { s.Start() },
		"HTTP/1.1 TLS": func(s *httptest.Server) { s.StartTLS() },
		"HTTP/2 TLS":   func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
		"h2c": func(s *httptest.Server) {
			s.Config.Protocols = protocols("h2c")
			s.Start()
			s.Client().Transport.(*http.Transport).Protocols = protocols("h2c")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, config{})
			srv := httptest.NewUnstartedServer(f)
			srv.Config.ReadTimeout, srv.Config.WriteTimeout = time.Second, time.Second
			set(srv)
			t.Cleanup(srv.Close)
			for _, server := range []bool{true, false} {
				s := attach(t, f, srv.Client(), srv.URL)
				if want := strings.HasPrefix(name, "HTTP/1.1"); (s.ProtoMajor == 1) != want {
					t.Fatalf("got %s", s.Proto)
				}
				for range 20 {
					s.works(t)
				}
				want := metrics.ClosedClient
				if server {
					want = metrics.ClosedShutdown
					s.c.CloseGracefully(want, time.Second)
					if _, err := s.rest(); err != nil {
						t.Errorf("the stream ended with %v", err)
					}
				}
				s.Body.Close()
				if got := <-f.backend.closed; got != want {
					t.Errorf("got reason %s, want %s", got, want)
				}
			}
		})
	}
}

// Real sockets and real time: the server's timeouts of a second do not cut a
// stream that lives longer.
func TestServerTimeoutsDoNotCutTheStream(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		f := newFixture(t, config{sse: sse.Options{Options: front.Options{HeartbeatInterval: 700 * time.Millisecond}}})
		srv := httptest.NewUnstartedServer(f)
		srv.Config.ReadTimeout, srv.Config.WriteTimeout, srv.Config.IdleTimeout = time.Second, time.Second, time.Second
		srv.EnableHTTP2 = h2
		srv.StartTLS()
		t.Cleanup(srv.Close)
		s := attach(t, f, srv.Client(), srv.URL)
		for beats := 0; beats < 3; beats++ { // over two seconds
			if e, err := ssetest.Read(s.br); err != nil || !e.IsComment() {
				t.Fatalf("HTTP/2 %v: got %+v, %v", h2, e, err)
			}
		}
		s.works(t)
		s.Body.Close()
	}
}
