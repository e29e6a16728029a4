package httpsse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sseServer is a server of HTTP+SSE under test.
type sseServer struct {
	*upstreamtest.Scripted
	out chan string // what is written to the stream; closing it ends that
}

// serveSSE serves a stream with an endpoint event, and what is sent to out; POSTs
// are answered by post, nil is 202.
func serveSSE(t *testing.T, post func(w http.ResponseWriter, m *jsonrpc.Message)) *sseServer {
	t.Helper()
	s := &sseServer{out: make(chan string, 100)}
	s.Scripted = upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/sse":
			send := upstreamtest.Stream(w)
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

func overSSE(s *sseServer) remote.URL {
	return remote.URL{Address: s.URL + "/sse", Transport: remote.TransportSSE}
}

// These are streams that servers really send.
func TestSSEStreamIsReadAsServersWriteIt(t *testing.T) {
	s := serveSSE(t, nil)
	k := upstreamtest.DialTalk(t, overSSE(s))
	s.out <- ": heartbeat"
	s.out <- "data: " + fmt.Sprintf(upstreamtest.Note, 1) // unnamed
	s.out <- "event: ping\ndata: " + fmt.Sprintf(upstreamtest.Note, 2)
	s.out <- "event: mcp-response\ndata: " + fmt.Sprintf(upstreamtest.Note, 3)
	s.out <- "event: endpoint\ndata: http://evil.example/steal"
	s.out <- "retry: 5\nid: 9\ndata:"
	s.out <- "event: message\ndata: not JSON"
	s.out <- "event: message\r\ndata: " + fmt.Sprintf(upstreamtest.Note, 4) + "\r\nid: 1"
	s.out <- "data: [" + fmt.Sprintf(upstreamtest.Note, 5) + "]"
	for _, n := range []int{1, 4, 5} {
		k.Gets(fmt.Sprintf(upstreamtest.Note, n))
	}
	k.Send(upstreamtest.Call2)
	s.Wait(t, 1, upstreamtest.Posted(upstreamtest.Call2)) // where it went before the second endpoint
	s.out <- "event: message\ndata: " + upstreamtest.Result2
	k.GetsOf("", upstreamtest.Result2)
}

func TestSSEEndOfTheStreamIsTheEndOfTheSession(t *testing.T) {
	s := serveSSE(t, nil)
	k := upstreamtest.DialTalk(t, overSSE(s))
	s.out <- "data: " + fmt.Sprintf(upstreamtest.Note, 1)
	close(s.out)
	k.Gets(fmt.Sprintf(upstreamtest.Note, 1))
	if err := k.Ended(); !errors.Is(err, io.EOF) || err.Error() != "the server ended the event stream: EOF" {
		t.Errorf("ended with %v", err)
	}
	if err := k.Conn.Send([]byte(upstreamtest.Call2)); err == nil {
		t.Error("Send works afterwards")
	}
}

func TestSSEFailedPostIsTheAnswer(t *testing.T) {
	for code, want := range map[int]string{
		400: "the server refused the request (400 Bad Request): no",
		401: "the server refused access (401 Unauthorized)",
		500: "the server failed (500 Internal Server Error)",
	} {
		asked := make(chan struct{})
		s := serveSSE(t, func(w http.ResponseWriter, m *jsonrpc.Message) {
			switch {
			case m.Kind == jsonrpc.Notification: // whose body nobody waits for
				w.WriteHeader(code)
				_ = http.NewResponseController(w).Flush()
				<-asked
			case m.ID == "2":
				http.Error(w, "no", code)
				close(asked)
			default:
				w.WriteHeader(http.StatusOK) // some do
			}
		})
		k := upstreamtest.DialTalk(t, overSSE(s))
		k.Send(upstreamtest.Initialized) // its failure is nobody's
		k.Send(upstreamtest.Call2)
		k.WantError("2", want)
		s.out <- `data: {"jsonrpc":"2.0","id":3,"result":{}}`
		k.Ping(3)
	}
}

// The end names the request that was not taken. A response of the client has an id of the server: it
// names none.
func TestSSEPostThatIsNotFoundEndsTheSession(t *testing.T) {
	for sent, want := range map[string]jsonrpc.ID{
		upstreamtest.Call2: "2", upstreamtest.Initialized: "", `{"jsonrpc":"2.0","id":2,"result":{}}`: "",
	} {
		s := serveSSE(t, func(w http.ResponseWriter, m *jsonrpc.Message) { w.WriteHeader(http.StatusNotFound) })
		k := upstreamtest.DialTalk(t, overSSE(s))
		k.Send(sent)
		err := k.Ended()
		ssetest.WantText(t, "ended with", err, "forgotten the session")
		var id jsonrpc.ID
		if of, ok := errors.AsType[*jsonrpc.NotTakenError](err); ok {
			id = of.ID
		}
		ssetest.Want(t, "the request that was not taken, after "+sent, id, want)
	}
}

func TestSSEMessageOverTheLimitEndsTheSession(t *testing.T) {
	s := serveSSE(t, nil)
	up := overSSE(s)
	up.MaxMessageBytes = 1000
	k := upstreamtest.DialTalk(t, up)
	s.out <- "data: " + strings.Repeat("x", 1001)
	ssetest.WantError(t, "Recv", upstreamtest.RecvError(k.Conn), jsonrpc.ErrTooLong)
}

func TestSSECloseEndsTheStream(t *testing.T) {
	s := serveSSE(t, nil)
	k := upstreamtest.DialTalk(t, overSSE(s))
	k.Send(upstreamtest.Initialized)
	ssetest.Want(t, "Close", k.Conn.Close(), nil)
	ssetest.Want(t, "messages posted before Close", len(s.Find(upstreamtest.Posted("initialized"))), 1)
	ssetest.WantError(t, "Recv", k.Next().Err, jsonrpc.ErrClosed)
	s.Server.Close() // waits for the stream
}

// A session that is closed while it waits for its endpoint was cancelled: that is no fault of the server.
func TestSSEDialIsCancelled(t *testing.T) {
	upstreamtest.TestInBubble(t, "", func(t *testing.T) {
		up := upstreamtest.Streamable(upstreamtest.ServeHere(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			upstreamtest.Stream(w)(": hello")
			<-r.Context().Done()
		}))
		up.Transport = remote.TransportSSE
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := up.Dial(ctx)
		ssetest.WantError(t, "Dial", err, context.Canceled)
		ssetest.WantText(t, "Dial", err.Error(), "no endpoint event came before the session was closed")
	})
}

func TestSSEDialSaysWhatIsWrong(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(w http.ResponseWriter, r *http.Request)
		want string
	}{
		"not found": {http.NotFound, "the answer is not an event stream but 404 Not Found"},
		"JSON":      {func(w http.ResponseWriter, r *http.Request) { upstreamtest.AnswerJSON(w, "{}") }, "the answer is not an event stream but 200 OK"},
		"ended":     {func(w http.ResponseWriter, r *http.Request) { upstreamtest.Stream(w)("event: hello\ndata: x") }, "the stream ended without an endpoint event"},
		"no access": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(401) }, "the server refused access (401 Unauthorized): configure the credentials"},
		"another origin": {func(w http.ResponseWriter, r *http.Request) {
			upstreamtest.Stream(w)("event: endpoint\ndata: http://evil.example/m")
		}, "the endpoint event names another origin"},
		"no answer": {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no endpoint event came: context deadline exceeded"},
		"no event":  {func(w http.ResponseWriter, r *http.Request) { upstreamtest.Stream(w)(": hello"); <-r.Context().Done() }, "no endpoint event came: context deadline exceeded"},
		"cut":       {func(w http.ResponseWriter, r *http.Request) { upstreamtest.Stream(w)(": hello"); panic("cut") }, "no endpoint event came: the handler panicked: cut"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://evil.example/", http.StatusFound)
		}, "but 302 Found"},
	} {
		upstreamtest.TestInBubble(t, name, func(t *testing.T) {
			up := upstreamtest.Streamable(upstreamtest.ServeHere(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) { tt.do(w, r) }))
			up.Address, up.Transport = "http://here.invalid/sse?key=hunter2", remote.TransportSSE
			begin := time.Now()
			_, err := up.Dial(t.Context())
			if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") || took > 30*time.Second {
				t.Errorf("got %v after %s", err, took)
			}
		})
	}
}
