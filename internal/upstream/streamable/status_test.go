package streamable_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A response that breaks off, or cannot be used, fails its request alone.
func TestResponseWithoutAnAnswerHarmsItsRequestAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		respond func(w http.ResponseWriter)
		reason  string
	}{
		"breaks before the head": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "response_lost"},
		"breaks in a stream":     {func(w http.ResponseWriter) { upstreamtest.Stream(w)(": hello"); panic(http.ErrAbortHandler) }, "response_lost"},
		"breaks in JSON": {func(w http.ResponseWriter) {
			upstreamtest.AnswerJSON(w, `{"jsonrpc":`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "response_lost"},
		"is another's": {func(w http.ResponseWriter) { upstreamtest.Stream(w)(`data: {"jsonrpc":"2.0","id":7,"result":{}}`) }, "response_lost"},
		"is a page": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		}, "invalid_response"},
		"is invalid":          {func(w http.ResponseWriter) { upstreamtest.AnswerJSON(w, `{"jsonrpc":"2.0","id":2}`) }, "invalid_response"},
		"is no JSON":          {func(w http.ResponseWriter) { upstreamtest.AnswerJSON(w, "hello") }, "invalid_response"},
		"is too long":         {func(w http.ResponseWriter) { upstreamtest.AnswerJSON(w, strings.Repeat("x", 1001)) }, "invalid_response"},
		"is only a head":      {func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }, "invalid_response"},
		"is a 502 of a proxy": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, "request_refused"},
		"is a refusal":        {func(w http.ResponseWriter) { http.Error(w, "no", http.StatusBadRequest) }, "request_refused"},
	} {
		t.Run(name, func(t *testing.T) {
			up := upstreamtest.Streamable(upstreamtest.Serve(t, upstreamtest.Calls(func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { tt.respond(w) })))
			up.MaxMessageBytes = 1000
			k := upstreamtest.Open(t, up)
			k.Send(upstreamtest.Call2)
			msg, id := k.Recv()
			for strings.Contains(msg, `"id":7`) {
				msg, id = k.Recv() // for who knows what is in flight
			}
			if id != "2" || !strings.Contains(msg, `"id":2,`) || !strings.Contains(msg, `"reason":"`+tt.reason+`","retryable":false`) || strings.Contains(msg, "127.0.0.1") {
				t.Errorf("got %s", msg)
			}
			k.Ping(3)
		})
	}
}

func TestServerThatHasForgottenTheSessionOrFailsEndsIt(t *testing.T) {
	for code, want := range map[int]string{404: "the server has forgotten the session", 500: "the server answered 500 Internal Server Error, also to a ping"} {
		s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { w.WriteHeader(code) }))
		k := upstreamtest.Open(t, upstreamtest.Streamable(s))
		k.Send(upstreamtest.Call2)
		ssetest.Want(t, "the end after "+fmt.Sprint(code), k.Ended(), want)
		if err := k.Conn.Send([]byte(upstreamtest.Call2)); err == nil || err.Error() != want {
			t.Errorf("%d: Send gives %v", code, err)
		}
		_ = k.Conn.Close()
		if got := s.Find(upstreamtest.Method("DELETE")); (len(got) == 0) != (code == 404) {
			t.Errorf("%d: DELETEs: %+v", code, got)
		}
	}
}

// After a broken response the server is asked whether it still has the session; what
// answers a notification counts too.
func TestServerThatStartsAnewEndsTheSession(t *testing.T) {
	for name, msg := range map[string]string{"under a request": upstreamtest.Call2, "before a notification": fmt.Sprintf(upstreamtest.Note, 1)} {
		var renewed atomic.Bool
		s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if m != nil && m.Kind == jsonrpc.Request && !renewed.Swap(true) {
				panic(http.ErrAbortHandler)
			}
			http.NotFound(w, r)
		}))
		k := upstreamtest.Open(t, upstreamtest.Streamable(s))
		k.Send(msg)
		ssetest.WantText(t, name+": ended with", k.Ended(), "forgotten the session")
	}
}

func TestUnreachableServerEndsTheSession(t *testing.T) {
	s := upstreamtest.Serve(t, upstreamtest.Session(nil))
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	s.Wait(t, 1, upstreamtest.Method("GET"))
	s.Server.CloseClientConnections()
	s.Server.Close()
	k.Send(upstreamtest.Call2)
	a := k.Next()
	if a.Err == nil { // it went out on a connection that was about to end
		k.Send(upstreamtest.Call2)
		a = k.Next()
	}
	if a.Err == nil || !strings.Contains(a.Err.Error(), "the server cannot be reached: ") || strings.Contains(a.Err.Error(), "127.0.0.1") {
		t.Errorf("ended with %v", a.Err)
	}
}
