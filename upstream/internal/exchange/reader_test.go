package exchange

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

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
			if !slices.Equal(*others, tt.before) {
				t.Errorf("before the answer: %q", *others)
			}
			*others = nil
			r.Rest()
			if !slices.Equal(*others, tt.after) {
				t.Errorf("after the answer: %q", *others)
			}
		})
	}
}

func TestReaderSaysWhyThereIsNoAnswer(t *testing.T) {
	broken := func(body string) io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader(body), iotest.ErrReader(errors.New("cut"))))
	}
	long := `{"jsonrpc":"2.0","id":2,"result":"` + strings.Repeat("x", 100) + `"}`
	for _, tt := range []struct {
		name, kind string
		body       io.ReadCloser
		reason     string
		text       string
		resumable  bool
	}{
		{"page", "text/html; charset=utf-8", response("", "<html>").Body, "invalid_response", `but "text/html; charset=utf-8": check the address`, false},
		{"empty", "application/json", response("", "").Body, "response_lost", "the response ended without it", false},
		{"cut", "application/json", broken(`{"jsonrpc":`), "response_lost", "cut", false},
		{"not JSON", "application/json", response("", "{{").Body, "invalid_response", "it is no JSON-RPC message: invalid JSON", false},
		{"invalid", "application/json", response("", `{"jsonrpc":"2.0","id":2}`).Body, "invalid_response", "it is no JSON-RPC message: ", false},
		{"over the limit", "application/json", response("", long).Body, "invalid_response", "it is over the limit of 120 bytes", false},
		{"event over the limit", "text/event-stream", response("", "data: "+long+"\n\n").Body, "invalid_response", "over the limit of 120 bytes", false},
		{"stream", "text/event-stream", response("", "data: "+note+"\n\n").Body, "response_lost", "ended without it", false},
		{"stream with ids", "text/event-stream", response("", "id: 1\ndata:\n\n").Body, "response_lost", "ended without it", true},
		{"stream with ids cut", "text/event-stream", broken("id: 1\ndata:\n\n"), "response_lost", "cut", true},
		{"id taken away", "text/event-stream", response("", "id: 1\ndata: "+note+"\n\nid\n\n").Body, "response_lost", "ended without it", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := testReader()
			resp := response(tt.kind, "")
			resp.Body = tt.body
			m, err := r.Read(resp)
			if m != nil || DataOf(err).Reason != tt.reason || !strings.Contains(err.Error(), tt.text) || r.Resumable() != tt.resumable {
				t.Errorf("got %v, %v, resumable %v", m, err, r.Resumable())
			}
		})
	}
}

func TestReaderGoesOnInAnotherResponse(t *testing.T) {
	r, others := testReader()
	if _, err := r.Read(response("text/event-stream", "retry: 20\nid: a\ndata: "+note+"\n\ndata: {\"half\"")); err == nil || !r.Resumable() {
		t.Fatalf("got %v, cursor %+v", err, r.Cursor)
	}
	if want := (Cursor{"a", 20 * time.Millisecond}); r.Cursor != want {
		t.Errorf("got cursor %+v, want %+v", r.Cursor, want)
	}
	m, err := r.Read(response("text/event-stream", "data: "+note+"\n\ndata: "+answer2+"\n\n"))
	if err != nil || m.ID != "2" || r.Cursor.LastID != "a" || r.Resumable() || !slices.Equal(*others, []string{note, note}) {
		t.Errorf("got %v, %v, cursor %+v, others %q", m, err, r.Cursor, *others)
	}
}
