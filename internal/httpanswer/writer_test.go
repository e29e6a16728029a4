package httpanswer_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// hidden is a ResponseWriter of a middleware that hides http.Flusher.
type hidden struct{ http.ResponseWriter }

// A client says which forms it takes. The form of its answer depends on that, and on whether events come
// before the answer.
func TestAnswerComesInTheFormThatTheClientTakes(t *testing.T) {
	const (
		all    = `{"a":1}`
		event  = "event: message\ndata: {\"a\":1}\n\n"
		before = "event: message\ndata: {}\n\n"
	)
	for _, tc := range []struct {
		form    httpanswer.Form
		flushes bool
		status  int
		note    bool
		body    string
		code    int
	}{
		{httpanswer.FormAny, true, 200, false, all, 200},
		{httpanswer.FormAny, true, 200, true, before + event, 200},
		{httpanswer.FormAny, true, 404, true, before + event, 200},
		{httpanswer.FormAny, false, 200, true, all, 200},
		{httpanswer.FormJSON, true, 200, true, all, 200},
		{httpanswer.FormEvents, true, 200, false, event, 200},
		{httpanswer.FormEvents, true, 404, false, all, 404},
		{httpanswer.FormEvents, false, 200, true, all, 200},
	} {
		rec := httptest.NewRecorder()
		var w http.ResponseWriter = rec
		if !tc.flushes {
			w = hidden{rec}
		}
		a := httpanswer.New(w, httptest.NewRequest(http.MethodPost, "/", nil), tc.form, time.Second)
		if tc.note {
			a.Message("", []byte(`{}`))
		}
		ssetest.Must(t, a.Answer(tc.status, []byte(all)))
		header := map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store",
			"X-Content-Type-Options": "nosniff", "Content-Length": "7"}
		if tc.body != all {
			header = map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform",
				"X-Accel-Buffering": "no", "Content-Length": ""}
		}
		for name, want := range header {
			ssetest.Want(t, name, rec.Header().Get(name), want)
		}
		if rec.Body.String() != tc.body || rec.Code != tc.code || !a.Written() {
			t.Errorf("%+v: got %d %q", tc, rec.Code, rec.Body)
		}
	}
}

// The head goes out with the first events, or alone.
func TestHeadOfAStreamIsFlushedOnce(t *testing.T) {
	rec := httptest.NewRecorder()
	a := httpanswer.New(rec, httptest.NewRequest(http.MethodGet, "/", nil), httpanswer.FormEvents, time.Second)
	ssetest.Want(t, "it can be a stream", a.Begin(), true)
	ssetest.Want(t, "written before the first Flush", rec.Flushed || a.Written(), false)
	ssetest.Must(t, a.Flush())
	ssetest.Want(t, "written after the first Flush", rec.Flushed && a.Written(), true)
	rec.Flushed = false
	ssetest.Must(t, a.Flush())
	ssetest.Want(t, "flushed with nothing to write", rec.Flushed, false)
	ssetest.Must(t, a.Heartbeat())
	ssetest.Want(t, "stream", rec.Body.String(), ": heartbeat\n\n")
}

// An answer that is ended before anything was written has nothing written, so that the caller can abort it.
func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	rec := httptest.NewRecorder()
	a := httpanswer.New(rec, httptest.NewRequest(http.MethodGet, "/", nil), httpanswer.FormEvents, time.Second)
	a.End()
	a.Message("1", []byte(`{}`))
	ssetest.WantError(t, "Flush", a.Flush(), httpanswer.ErrOver)
	ssetest.WantError(t, "Err", a.Err(), httpanswer.ErrOver)
	ssetest.Want(t, "written", a.Written() || rec.Body.Len() > 0, false)
}
