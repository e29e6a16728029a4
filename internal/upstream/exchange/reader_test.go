package exchange

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func response(contentType, body string) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}
}

// testReader returns a reader for the request 2, and the messages that it passes on.
func testReader() (*Reader, *[]string) {
	var others []string
	x := testEndpoint("")
	x.Limit = 120
	return &Reader{Endpoint: x, ID: "2", Other: func(m *jsonrpc.Message) error {
		others = append(others, string(m.Raw()))
		return nil
	}}, &others
}

const (
	answer2 = `{"jsonrpc":"2.0","id":2,"result":1.0}`
	note    = `{"jsonrpc":"2.0","method":"n"}`
	ask2    = `{"jsonrpc":"2.0","id":2,"method":"ping"}` // of the server, whose ids are its own
	other3  = `{"jsonrpc":"2.0","id":3,"result":{}}`
)

func TestReaderFindsTheAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, kind, body string
		before, after    []string // passed on by Read and by Rest
	}{
		{"JSON", "application/json", answer2, nil, nil},
		{"JSON without its id", "application/json", `{"jsonrpc":"2.0","id":null,"result":1.0}`, nil, nil},
		{"JSON on lines", "application/json", "{\n\"jsonrpc\":\"2.0\",\r\n\"id\":2,\"result\":1.0}", nil, nil},
		{"batch", "application/json", "[" + note + ", " + answer2 + ", " + note + "]", []string{note}, []string{note}},
		{"events", "text/event-stream; charset=utf-8", "data: " + note + "\n\nevent: message\ndata: " + answer2 + "\n\ndata: " + other3 + "\n\n", []string{note}, []string{other3}},
		{"priming", "text/event-stream", "id: a\ndata:\n\nretry: 5\n\ndata: " + answer2 + "\n\n", nil, nil},
		{"request with the same id", "text/event-stream", "data: " + ask2 + "\n\ndata: " + answer2 + "\n\n", []string{ask2}, nil},
		{"response to another", "text/event-stream", "data: " + other3 + "\n\ndata: " + answer2 + "\n\n", []string{other3}, nil},
		{"invalid with another id", "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":3}\n\ndata: " + answer2 + "\n\n", []string{`{"jsonrpc":"2.0","id":3}`}, nil},
		{"invalid", "text/event-stream", "data: x\n\ndata: {}\n\ndata: " + answer2 + "\n\n", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, others := testReader()
			m, err := r.Read(response(tt.kind, tt.body))
			if err != nil || m.ID != "2" || string(m.Result()) != "1.0" || bytes.ContainsAny(m.Raw(), "\r\n") || r.Resumable() {
				t.Fatalf("got %v, %v", m, err)
			}
			ssetest.Want(t, "before the answer", *others, tt.before)
			*others = nil
			r.Rest()
			ssetest.Want(t, "after the answer", *others, tt.after)
		})
	}
}
