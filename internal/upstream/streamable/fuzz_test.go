package streamable_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
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
		if code < 200 || code > 599 || !httpguts.ValidHeaderFieldValue(kind) || bytes.Contains(body, []byte("retry")) {
			return // a pause of minutes may be asked for
		}
		u := remote.HTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			said, _ := io.ReadAll(r.Body)
			switch {
			case bytes.Contains(said, []byte(`"ping"`)):
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"jsonrpc":"2.0","id":3,"result":{}}`)
			case r.Method == http.MethodPost:
				w.Header().Set("Content-Type", kind)
				w.WriteHeader(int(code))
				w.Write(body)
			default: // no resumption
				w.WriteHeader(http.StatusMethodNotAllowed)
			}
		})).(remote.URL)
		u.MaxMessageBytes, u.Transport = 300, remote.TransportStreamable
		conn, err := u.Dial(t.Context())
		ssetest.Must(t, err)
		defer conn.Close()
		watch := time.AfterFunc(20*time.Second, func() { conn.Close() })
		defer watch.Stop()
		upstreamtest.Send(t, conn, `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
		own := func(id jsonrpc.ID) bool { return id == "2" }
		if !answerOf(t, conn, own, body) {
			return
		}
		upstreamtest.Send(t, conn, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		answerOf(t, conn, func(id jsonrpc.ID) bool { return id == "3" }, body)
	})
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
