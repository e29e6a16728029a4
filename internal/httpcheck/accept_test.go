package httpcheck_test

import (
	"net/http"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestAccept(t *testing.T) {
	for _, test := range []struct {
		header string // "-" for none
		form   httpanswer.Form
		status int // of the refusal of a POST; 0: none
		events bool
	}{
		{"-", httpanswer.FormAny, 0, true},
		{" ", httpanswer.FormAny, 0, true},
		{"*/*", httpanswer.FormAny, 0, true},
		{"application/json, text/event-stream", httpanswer.FormAny, 0, true},
		{"text/event-stream, application/json", httpanswer.FormEvents, 0, true},
		{"Text/Event-Stream, APPLICATION/JSON", httpanswer.FormEvents, 0, true},
		{"text/event-stream;q=0.9, application/json;q=0.9", httpanswer.FormEvents, 0, true},
		{"text/*;q=0.9, application/json;q=0.9", httpanswer.FormEvents, 0, true},
		{"application/json", httpanswer.FormJSON, 0, false},
		{"application/*", httpanswer.FormJSON, 0, false},
		{"text/event-stream", httpanswer.FormEvents, 0, true},
		{"text/*;q=0.5", httpanswer.FormEvents, 0, true},
		{"text/event-stream;q=0", httpanswer.FormAny, http.StatusNotAcceptable, false},
		{"text/html, text/event-stream;q=0", httpanswer.FormAny, http.StatusNotAcceptable, false},
		{"*/*, text/event-stream;q=0", httpanswer.FormJSON, 0, false},
		{"image/png", httpanswer.FormAny, http.StatusNotAcceptable, false},
		{";;, /", httpanswer.FormAny, http.StatusNotAcceptable, false},
	} {
		var header []string
		if test.header != "-" {
			header = []string{"Accept", test.header}
		}
		r := ssetest.Request(t.Context(), http.MethodPost, "/mcp", "", header...)
		form, refusal := httpcheck.AnswerForm(r)
		status := 0
		if refusal != nil {
			status = refusal.Status
		}
		ssetest.Want(t, test.header+": status", status, test.status)
		ssetest.Want(t, test.header+": form", form, test.form)
		ssetest.Want(t, test.header+": takes events", httpcheck.AcceptOf(r).TakesEvents(), test.events)
	}
}
