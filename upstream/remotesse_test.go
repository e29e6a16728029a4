package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// sseServer is a server of HTTP+SSE under test.
type sseServer struct {
	*scripted
	out chan string // what is written to the stream; closing it ends that
}

// serveSSE serves a stream with an endpoint event, and what is sent to out; POSTs
// are answered by post, nil is 202.
func serveSSE(t *testing.T, post func(w http.ResponseWriter, m *jsonrpc.Message)) *sseServer {
	t.Helper()
	s := &sseServer{out: make(chan string, 100)}
	s.scripted = serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/sse":
			send := stream(w)
			send("event: endpoint\ndata: /messages?sessionId=1")
			for {
				select {
				case text, ok := <-s.out:
					if !ok {
						return
					}
					send("%s", text)
				case <-r.Context().Done():
					return
				}
			}
		case r.Method != http.MethodPost || r.URL.Path != "/messages" || r.URL.RawQuery != "sessionId=1":
			http.NotFound(w, r)
		case post != nil:
			post(w, m)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
	return s
}

func overSSE(s *sseServer) upstream.URL {
	return upstream.URL{Address: s.URL + "/sse", Transport: upstream.TransportSSE}
}

func TestSSEMessagesGoBothWaysUnchanged(t *testing.T) {
	s := serveSSE(t, nil)
	up := overSSE(s)
	up.Header = http.Header{"X-Key": {"k"}}
	k := dialTalk(t, up)
	k.send(call2)
	s.wait(t, 1, posted(call2))
	s.out <- "event: message\ndata: " + result2
	if got, id := k.recv(); got != result2 || id != "" {
		t.Errorf("got %s with request %q", got, id)
	}
	for _, v := range s.seen() {
		if v.header.Get("X-Key") != "k" || v.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s has %v", v.method, v.header)
		}
	}
}

// facts 1.2, 1.4, 5.1: what servers really send.
func TestSSEStreamIsReadAsServersWriteIt(t *testing.T) {
	s := serveSSE(t, nil)
	k := dialTalk(t, overSSE(s))
	s.out <- ": heartbeat"
	s.out <- "data: " + fmt.Sprintf(note, 1) // unnamed
	s.out <- "event: ping\ndata: " + fmt.Sprintf(note, 2)
	s.out <- "event: mcp-response\ndata: " + fmt.Sprintf(note, 3)
	s.out <- "event: endpoint\ndata: http://evil.example/steal"
	s.out <- "retry: 5\nid: 9\ndata:"
	s.out <- "event: message\ndata: not JSON"
	s.out <- "event: message\r\ndata: " + fmt.Sprintf(note, 4) + "\r\nid: 1"
	s.out <- "data: [" + fmt.Sprintf(note, 5) + "]"
	for _, n := range []int{1, 4, 5} {
		k.gets(fmt.Sprintf(note, n))
	}
	k.send(call2)
	s.wait(t, 1, posted(call2)) // where it went before the second endpoint
}

func TestSSEEndOfTheStreamIsTheEndOfTheSession(t *testing.T) {
	s := serveSSE(t, nil)
	k := dialTalk(t, overSSE(s))
	s.out <- "data: " + fmt.Sprintf(note, 1)
	close(s.out)
	k.gets(fmt.Sprintf(note, 1))
	if err := k.ended(); !errors.Is(err, io.EOF) || err.Error() != "the server ended the event stream: EOF" {
		t.Errorf("ended with %v", err)
	}
	if err := k.conn.Send([]byte(call2)); err == nil {
		t.Error("Send works afterwards")
	}
}

func TestSSEFailedPostIsTheAnswer(t *testing.T) {
	for code, want := range map[int]string{
		400: "the server refused the request (400 Bad Request): no",
		401: "the server refused access (401 Unauthorized)",
		413: "the server refused the request (413 Request Entity Too Large): no",
		429: "the server takes no more requests now (429 Too Many Requests)",
		500: "the server answered 500 Internal Server Error",
	} {
		s := serveSSE(t, func(w http.ResponseWriter, m *jsonrpc.Message) {
			if m.ID == "2" || m.Kind == jsonrpc.Notification {
				http.Error(w, "no", code)
				return
			}
			w.WriteHeader(http.StatusOK) // some do
		})
		k := dialTalk(t, overSSE(s))
		k.send(initialized) // its failure is nobody's
		k.send(call2)
		if f := k.fails(); string(f.ID) != "2" || !strings.Contains(f.Error.Message, want) {
			t.Errorf("%d: got %+v", code, f)
		}
		k.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		s.wait(t, 1, posted("ping"))
		s.out <- `data: {"jsonrpc":"2.0","id":3,"result":{}}`
		if got, _ := k.recv(); got != `{"jsonrpc":"2.0","id":3,"result":{}}` {
			t.Errorf("%d: afterwards got %s", code, got)
		}
	}
}

func TestSSEPostThatIsNotFoundEndsTheSession(t *testing.T) {
	s := serveSSE(t, func(w http.ResponseWriter, m *jsonrpc.Message) { w.WriteHeader(http.StatusNotFound) })
	k := dialTalk(t, overSSE(s))
	k.send(call2)
	if err := k.ended(); !strings.Contains(err.Error(), "forgotten the session") {
		t.Errorf("ended with %v", err)
	}
}

func TestSSEPostsKeepTheirOrder(t *testing.T) {
	s := serveSSE(t, nil)
	k := dialTalk(t, overSSE(s))
	const n = 50
	for i := range n {
		k.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i+1))
	}
	for i, v := range s.wait(t, n, posted("ping")) {
		if !strings.Contains(v.body, fmt.Sprintf(`"id":%d,`, i+1)) {
			t.Errorf("number %d is %s", i, v.body)
		}
	}
}

func TestSSEMessageOverTheLimitIsTold(t *testing.T) {
	s := serveSSE(t, nil)
	up := overSSE(s)
	up.MaxMessageBytes = 1000
	k := dialTalk(t, up)
	s.out <- "data: " + strings.Repeat("x", 1001)
	s.out <- "data: " + fmt.Sprintf(note, 1)
	if a := k.next(); !errors.Is(a.err, jsonrpc.ErrTooLong) {
		t.Errorf("got %s, %v", a.msg, a.err)
	}
	k.gets(fmt.Sprintf(note, 1))
}

// TypeScript's rule (facts 1.3): credentials go to no other origin.
func TestSSEEndpointOfAnotherOriginIsRefused(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {})
	for name, endpoint := range map[string]string{
		"other port": other.URL + "/messages", "other host": "http://evil.example/messages",
		"other scheme": "https://127.0.0.1/messages", "network path": "//evil.example/messages", "file": "file:///etc/passwd",
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			stream(w)("event: endpoint\ndata: %s", endpoint)
		})
		_, err := upstream.URL{Address: s.URL, Transport: upstream.TransportSSE}.Dial(t.Context())
		if err == nil || !strings.Contains(err.Error(), "another origin") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if got := other.seen(); len(got) > 0 {
		t.Errorf("the other origin got %+v", got)
	}
}

func TestSSEEndpointIsRelativeToTheStream(t *testing.T) {
	for endpoint, want := range map[string]string{
		"/m?s=1": "/m?s=1", "m?s=1": "/a/m?s=1", "?s=1": "/a/sse?s=1", " /m ": "/m", "%s/m": "/m", "": "/a/sse",
	} {
		at := make(chan string, 1)
		var s *scripted
		s = serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if user, password, ok := r.BasicAuth(); !ok || user != "u" || password != "p" {
				http.Error(w, "who?", http.StatusUnauthorized)
				return
			}
			if m != nil {
				at <- r.URL.RequestURI()
				return
			}
			send := stream(w)
			send("event: endpoint\ndata: %s", strings.Replace(endpoint, "%s", s.URL, 1))
			<-r.Context().Done()
		})
		k := dialTalk(t, upstream.URL{Address: strings.Replace(s.URL, "//", "//u:p@", 1) + "/a/sse", Transport: upstream.TransportSSE})
		k.send(call2)
		select {
		case got := <-at:
			if got != want {
				t.Errorf("%q leads to %q, want %q", endpoint, got, want)
			}
		case <-time.After(patience):
			t.Errorf("%q leads nowhere", endpoint)
		}
	}
}

func TestSSEDialSaysWhatIsWrong(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(w http.ResponseWriter, r *http.Request)
		want string
	}{
		"not found": {http.NotFound, "the answer is no event stream, but 404 Not Found"},
		"JSON":      {func(w http.ResponseWriter, r *http.Request) { answerJSON(w, "{}") }, "the answer is no event stream, but 200 OK"},
		"ended":     {func(w http.ResponseWriter, r *http.Request) { stream(w)("event: hello\ndata: x") }, "the stream ended without an endpoint event"},
		"no access": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(401) }, "the server refused access (401 Unauthorized): configure the credentials"},
		"no URL":    {func(w http.ResponseWriter, r *http.Request) { stream(w)("event: endpoint\ndata: http://[") }, "the endpoint event holds no URL"},
		"no answer": {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no endpoint event came: context deadline exceeded"},
		"no event":  {func(w http.ResponseWriter, r *http.Request) { stream(w)(": hello"); <-r.Context().Done() }, "no endpoint event came: context deadline exceeded"},
		"cut":       {func(w http.ResponseWriter, r *http.Request) { stream(w)(": hello"); panic(http.ErrAbortHandler) }, "no endpoint event came"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://evil.example/", http.StatusFound)
		}, "but 302 Found"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { tt.do(w, r) })
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := upstream.URL{Address: s.URL + "/sse?key=hunter2", Transport: upstream.TransportSSE}.Dial(ctx)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSSECloseEndsTheStream(t *testing.T) {
	gone := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m == nil {
			stream(w)("event: endpoint\ndata: /m")
			<-r.Context().Done()
			close(gone)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	k := dialTalk(t, upstream.URL{Address: s.URL, Transport: upstream.TransportSSE})
	k.send(initialized)
	if err := k.conn.Close(); err != nil {
		t.Error(err)
	}
	if got := s.find(posted("initialized")); len(got) != 1 {
		t.Error("what was sent before Close was not posted")
	}
	<-gone
	if a := k.next(); !errors.Is(a.err, jsonrpc.ErrClosed) {
		t.Errorf("Recv gives %v", a.err)
	}
	_ = k.conn.Close()
}
