package streamable_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/streamable"
)

// plainWriter hides http.Flusher, and has no Unwrap.
type plainWriter struct{ http.ResponseWriter }

func (plainWriter) Unwrap() {} // not the method that http.ResponseController looks for

// Behind a middleware that hides http.Flusher a POST gets its answer as JSON, however long
// it takes and whatever else comes.
func TestPOSTWithoutFlusher(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		f.backend.receive = func(c *connstate.Connection, m *jsonrpc.Message) {
			_ = c.Send(m.ID, []byte(note(1)))
			time.AfterFunc(time.Minute, func() { answer(c, m.ID, jsonrpc.NewResult(m.ID, m.Params()), "") })
		}
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(request("1", "work")))
		r.Header = http.Header{"Accept": {acceptBoth}, "Content-Type": {"application/json"}}
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(plainWriter{w}, r)
		if got := w.Body.String(); w.Code != http.StatusOK || got != result("1") {
			t.Errorf("got %d %s", w.Code, got)
		}
	})
}
