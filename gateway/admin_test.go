package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// bounded is a ResponseWriter that counts the writes without a deadline.
type bounded struct {
	*httptest.ResponseRecorder
	deadline  time.Time
	unbounded int
}

func (b *bounded) SetWriteDeadline(at time.Time) error {
	b.deadline = at
	return nil
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.deadline.IsZero() {
		b.unbounded++
	}
	return b.ResponseRecorder.Write(p)
}

// An operator's client that does not read cannot hold an answer for ever, whatever http.Server has
// the routes.
func TestOperatorsAnswersHaveADeadline(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Settings{}, func(t *testing.T, g *gateway.Gateway) {
		for _, path := range []string{"/healthz", "/readyz", "/readyz?server=x", "/connections",
			"/status", "/status/servers/x", "/status/style.css"} {
			b := &bounded{ResponseRecorder: httptest.NewRecorder()}
			g.Admin().ServeHTTP(b, httptest.NewRequest(http.MethodGet, path, nil))
			wantBounded(t, path, b)
		}
	})
}

// A browser that does not read cannot hold the page, its files or the state for ever either.
func TestAnswersForBrowsersHaveADeadline(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Settings{Options: gateway.Options{Page: gateway.PageOn}}, func(t *testing.T, g *gateway.Gateway) {
		for _, path := range []string{"/mcp", "/mcp?page=script.js", "/mcp?page=style.css", "/mcp?page=state.json",
			"/", "/?page=servers.js", "/?page=state.json"} {
			b := &bounded{ResponseRecorder: httptest.NewRecorder()}
			r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
			r.RemoteAddr = "127.0.0.1:1234"
			if !strings.Contains(path, "page=") {
				r.Header.Set("Accept", "text/html")
			}
			g.ServeHTTP(b, r)
			equal(t, path+": status", b.Code, http.StatusOK)
			wantBounded(t, path, b)
		}
	})
}

// wantBounded checks that an answer has been written, and each part of it with a deadline.
func wantBounded(t *testing.T, path string, b *bounded) {
	t.Helper()
	equal(t, path+": has a body", b.Body.Len() > 0, true)
	equal(t, path+": writes without a deadline", b.unbounded, 0)
}

// A probe may take longer than the write timeout of the http.Server, which ends a response over
// HTTP/2 also while it waits.
func TestSlowProbeOutlivesTheServersWriteTimeout(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		inFakeTime(t, &server{dial: slow(3 * time.Second)}, gateway.Settings{}, func(t *testing.T, g *gateway.Gateway) {
			var protocols http.Protocols
			protocols.SetHTTP1(!http2)
			protocols.SetUnencryptedHTTP2(http2)
			srv := pipetest.Serve(g.Admin(), &protocols, func(s *http.Server) { s.WriteTimeout = time.Second })
			defer synctest.Wait()
			defer srv.Stop()
			res, err := srv.Client.Get("http://localhost/readyz")
			must(t, err)
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			must(t, err)
			ssetest.WantText(t, "/readyz", string(body), `"status":"ready"`)
		})
	}
}
