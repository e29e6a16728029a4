package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
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
		for _, path := range []string{"/healthz", "/readyz", "/readyz?server=x", "/connections"} {
			b := &bounded{ResponseRecorder: httptest.NewRecorder()}
			g.Admin().ServeHTTP(b, httptest.NewRequest(http.MethodGet, path, nil))
			equal(t, path+": writes without a deadline", b.unbounded, 0)
		}
	})
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
