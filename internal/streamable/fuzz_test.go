package streamable_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/streamable"
)

// FuzzRequest sends any method, headers and body: the Handler answers, with one of the
// statuses that it has, and does not panic.
func FuzzRequest(f *testing.F) {
	f.Add("POST", acceptBoth, "", "", "", initialize)
	f.Add("POST", "*/*;q=0.1", "id", "2025-06-18", "", `[{"jsonrpc":"2.0","id":1,"method":"echo"}]`)
	f.Add("GET", "text/event-stream", "id", "2026-07-28", "1-1", "")
	f.Add("DELETE", "", "id", "", "0-9223372036854775808", "")
	statuses := map[int]bool{200: true, 202: true, 204: true, 400: true, 404: true, 405: true, 406: true, 413: true, 415: true}
	f.Fuzz(func(t *testing.T, method, accept, session, version, lastID, body string) {
		world := newFixture(t, streamable.Options{Options: httpcheck.Options{MaxMessageBytes: 1 << 30}}, connstate.Limits{})
		defer world.srv.Close()
		defer world.closeAll()
		h := world.handler
		h.NeverStream()
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
		if method == http.MethodGet { // one that is accepted would wait for ever
			session = ""
		}
		r.Method = method
		r.Header = http.Header{
			"Accept": {accept}, "Content-Type": {"application/json"}, "Mcp-Session-Id": {session},
			"Mcp-Protocol-Version": {version}, "Last-Event-Id": {lastID},
		}
		if strings.Contains(body, "never") {
			return
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !statuses[w.Code] {
			t.Errorf("got %d", w.Code)
		}
	})
}

// FuzzEventID: an id is read back as it was written, and nothing else is read.
func FuzzEventID(f *testing.F) {
	for _, text := range []string{"0-0", "1-2", "01-2", "-1-2", "1-", "9223372036854775807-1", "+1-2", "1-2-rMQ", "1-2-nMSwiYSI", "1-2-xMQ", "1-2-rMSAs", "1-2-rbnVsbA"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, ok := streamable.ParseEventID(text); ok && id != text {
			t.Errorf("%q was read as %s", text, id)
		}
	})
}
