package upstream

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// FuzzResponse has a server answer a call with anything, and checks that the call
// is answered once, or the session over, and that another call is not touched.
func FuzzResponse(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":2,"result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}`,
		"data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n", "id: 1\ndata:\n\ndata: [[],{}]\n\n", "<html>", "",
	} {
		f.Add(uint16(200), "application/json", []byte(body))
		f.Add(uint16(200), "text/event-stream", []byte(body))
		f.Add(uint16(400), "text/plain", []byte(body))
		f.Add(uint16(404), "application/json", []byte(body))
		f.Add(uint16(503), "", []byte(body))
	}
	f.Fuzz(func(t *testing.T, code uint16, kind string, body []byte) {
		if code < 200 || code > 599 || !validHeader("X", []string{kind}) || bytes.Contains(body, []byte("retry")) {
			return // a pause of minutes may be asked for
		}
		u := URL{Address: handlerAddress, MaxMessageBytes: 300, Client: &http.Client{Transport: handlerTransport{
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				said, _ := io.ReadAll(r.Body)
				switch {
				case bytes.Contains(said, []byte(`"ping"`)):
					w.Header().Set("Content-Type", typeJSON)
					io.WriteString(w, `{"jsonrpc":"2.0","id":3,"result":{}}`)
				case r.Method == http.MethodPost:
					w.Header().Set("Content-Type", kind)
					w.WriteHeader(int(code))
					w.Write(body)
				default: // no resumption
					w.WriteHeader(http.StatusMethodNotAllowed)
				}
			}),
		}}, Transport: TransportStreamable}
		conn, err := u.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		watch := time.AfterFunc(20*time.Second, func() { conn.Close() })
		defer watch.Stop()
		send(t, conn, `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
		own := func(id jsonrpc.ID) bool { return id == "2" }
		if !answerOf(t, conn, own, body) {
			return
		}
		send(t, conn, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		answerOf(t, conn, func(id jsonrpc.ID) bool { return id == "3" }, body)
	})
}

func send(t *testing.T, conn jsonrpc.Conn, msg string) {
	if err := conn.Send([]byte(msg)); err != nil {
		t.Fatal(err)
	}
}

// answerOf waits for the answer to a request, and reports false when the session
// ended instead.
func answerOf(t *testing.T, conn jsonrpc.Conn, is func(jsonrpc.ID) bool, body []byte) bool {
	for {
		msg, err := conn.Recv()
		if errors.Is(err, jsonrpc.ErrClosed) {
			t.Fatalf("no answer after %.300q", body)
		}
		if err != nil {
			return false
		}
		if bytes.ContainsAny(msg, "\r\n") {
			t.Fatalf("a message on several lines: %q", msg)
		}
		if m, _ := jsonrpc.Parse(msg); m != nil && m.Kind != jsonrpc.Request && is(m.ID) {
			return true
		}
	}
}

// FuzzEndpoint checks that nothing which a server names as its endpoint leads to
// another origin.
func FuzzEndpoint(f *testing.F) {
	for _, data := range []string{"/messages?s=1", "m", "//evil.example/m", "http://h:80/m", "http://user@h/", "HTTP://H/", "\\\\evil\\", "http:///m", "http:m", "http://h\t.evil/"} {
		f.Add([]byte(data))
	}
	stream, err := url.Parse("http://u:p@h/a/sse")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		at, err := resolveEndpoint(stream, data)
		if err != nil {
			return
		}
		req, err := http.NewRequest(http.MethodPost, at, nil)
		if err != nil {
			return // nothing is sent
		}
		host := strings.ToLower(req.URL.Host)
		if req.URL.Scheme != "http" || host != "h" && host != "h:80" && host != "h:" {
			t.Errorf("%q leads to %s", data, at)
		}
		if password, _ := req.URL.User.Password(); req.URL.User.Username() != "u" || password != "p" {
			t.Errorf("%q changes the user: %s", data, at)
		}
	})
}

// FuzzRefused checks that any response that is no success is either an answer with
// the id of the request, on one line, or the end of the session.
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
		r := refused(resp, "2", session)
		if (r.answer == nil) == (r.over == nil) {
			t.Fatalf("answer %q and over %v", r.answer, r.over)
		}
		if r.over != nil {
			return
		}
		m, err := jsonrpc.Parse(r.answer)
		if err != nil || m.Kind != jsonrpc.Response || m.ID != "2" || bytes.ContainsAny(r.answer, "\r\n") {
			t.Errorf("answer %q: %v", r.answer, err)
		}
	})
}
