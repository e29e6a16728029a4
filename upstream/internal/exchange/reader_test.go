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

var (
	longAnswer = `{"jsonrpc":"2.0","result":"` + strings.Repeat("x", 121) + `","id":2}`
)

func TestReaderSaysWhyThereIsNoAnswer(t *testing.T) {
	broken := func(body string) io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader(body), iotest.ErrReader(errors.New("cut"))))
	}
	long := strings.Repeat("x", 121)
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
		{"event over the limit", "text/event-stream", response("", "data: "+longAnswer+"\n\n").Body, "invalid_response", "over the limit of 120 bytes", false},
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

func TestReaderStopsWithTheErrorOfItsReceiver(t *testing.T) {
	for name, resp := range map[string]*http.Response{
		"events": response("text/event-stream", "data: "+note+"\n\ndata: "+note+"\n\n"), "batch": response("application/json", "["+note+","+note+"]"),
	} {
		calls := 0
		r := Reader{Endpoint: testEndpoint(""), ID: "2", Other: func(*jsonrpc.Message) error { calls++; return jsonrpc.ErrClosed }}
		r.Endpoint.Limit = 1000
		if m, err := r.Read(resp); m != nil || err == nil || calls != 1 {
			t.Errorf("%s: got %v, %v after %d calls", name, m, err, calls)
		}
	}
}

// FuzzRefused checks that any unsuccessful response is either an answer with the id of
// the request, on one line, or the end of the session.
func FuzzRefused(f *testing.F) {
	for _, body := range []string{"", "JSON RPC not handled: x", "invalid request: y", `{"jsonrpc":"2.0","id":2,"error":{}}`, `{"jsonrpc":"2.0",
"error":{"code":1,"message":"m"}}`, "<", strings.Repeat("é", 300)} {
		for _, code := range []uint16{300, 400, 401, 404, 429, 500, 503} {
			f.Add(code, "5", body, true)
			f.Add(code, "", body, false)
		}
	}
	f.Fuzz(func(t *testing.T, code uint16, after, body string, session bool) {
		if code < 300 || code > 999 {
			return
		}
		resp := response("text/plain", body)
		resp.StatusCode = int(code)
		resp.Header.Set("Retry-After", after)
		r := Reader{Endpoint: testEndpoint(""), ID: "2", HasSession: session}
		m, err := r.Read(resp)
		if (m == nil) == (err == nil) || r.Resumable() {
			t.Fatalf("answer %v and error %v", m, err)
		}
		if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
			m, err = jsonrpc.Parse(jsonrpc.NewError("2", e))
			if err != nil {
				t.Fatalf("error %v: %v", e, err)
			}
		}
		if m != nil && (m.Kind != jsonrpc.Response || m.ID != "2" || bytes.ContainsAny(m.Raw(), "\r\n")) {
			t.Errorf("answer %q", m.Raw())
		}
	})
}
