package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// resumable is a session whose tools/call is answered by post, and whose GETs with a
// Last-Event-ID by get.
func resumable(post func(w http.ResponseWriter), get func(n int, w http.ResponseWriter, r *http.Request)) handler {
	var n atomic.Int32
	return session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "":
			w.WriteHeader(http.StatusMethodNotAllowed)
		case r.Method == http.MethodGet:
			get(int(n.Add(1)), w, r)
		case m.Method == "tools/call":
			post(w)
		default:
			answerJSON(w, string(jsonrpc.NewResult(m.ID, []byte("{}"))))
		}
	})
}

func resumptions(v visit) bool { return v.method == "GET" && v.header.Get("Last-Event-ID") != "" }

// MCP 2025-11-25, basic/transports, "resumability and redelivery"; SEP-1699.
func TestBrokenStreamIsResumedFromItsLastEvent(t *testing.T) {
	for name, end := range map[string]func(){"cut": func() { panic(http.ErrAbortHandler) }, "closed": func() {}} {
		testInBubble(t, name, func(t *testing.T) {
			s := serveHere(resumable(func(w http.ResponseWriter) {
				send := stream(w)
				send("id: p-0\nretry: 200\ndata:")
				send("id: p-1\ndata: "+note, 1)
				end()
			}, func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 1 { // polling: nothing yet
					stream(w)(": wait")
					return
				}
				send := stream(w)
				send("id: p-2\ndata: "+note, 2)
				send("id: p-3\ndata: %s", result2)
			}))
			k := open(t, streamable(s))
			k.send(call2)
			for _, want := range []string{fmt.Sprintf(note, 1), fmt.Sprintf(note, 2), result2} {
				if got, id := k.recv(); got != want || id != "2" {
					t.Errorf("got %s with request %q, want %s", got, id, want)
				}
			}
			before := s.find(posted("tools/call"))[0].at
			for _, v := range s.find(resumptions) {
				if id := v.header.Get("Last-Event-ID"); id != "p-1" {
					t.Errorf("Last-Event-ID %q", id)
				}
				if v.header.Get("Mcp-Session-Id") != "s-1" || v.at.Sub(before) < 200*time.Millisecond {
					t.Errorf("resumed with %v after %s", v.header, v.at.Sub(before))
				}
				before = v.at
			}
			if n := len(s.find(posted("tools/call"))); n != 1 {
				t.Errorf("the call was posted %d times", n)
			}
		})
	}
}

func TestResponseThatCannotBeResumedIsLost(t *testing.T) {
	for name, tt := range map[string]struct {
		first string
		get   func(w http.ResponseWriter)
		tries int
	}{
		"no id":         {"data: " + fmt.Sprintf(note, 1), nil, 0},
		"id taken away": {"id: a\ndata: " + fmt.Sprintf(note, 1) + "\n\nid:\n", nil, 0},
		"not supported": {"id: a\ndata: " + fmt.Sprintf(note, 1), func(w http.ResponseWriter) { w.WriteHeader(400) }, 1},
		"no stream":     {"id: a\ndata: " + fmt.Sprintf(note, 1), func(w http.ResponseWriter) { answerJSON(w, "{}") }, 1},
		"always fails":  {"id: a\ndata: " + fmt.Sprintf(note, 1), func(w http.ResponseWriter) { w.WriteHeader(503) }, 5},
	} {
		testInBubble(t, name, func(t *testing.T) {
			s := serveHere(resumable(func(w http.ResponseWriter) { stream(w)("%s", tt.first) },
				func(_ int, w http.ResponseWriter, r *http.Request) { tt.get(w) }))
			k := open(t, streamable(s))
			k.send(call2)
			k.recv()
			f := k.fails()
			if string(f.ID) != "2" || f.Error.Code != -32603 || f.Error.Data.Reason != "response_lost" || f.Error.Data.Retryable {
				t.Errorf("got %+v", f)
			}
			if n := len(s.find(resumptions)); n != tt.tries {
				t.Errorf("%d attempts to resume, want %d", n, tt.tries)
			}
			k.ping(3)
		})
	}
}

func TestResumptionThatIsNotFoundEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveHere(resumable(func(w http.ResponseWriter) { stream(w)("id: a\ndata:") },
			func(_ int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }))
		k := open(t, streamable(s))
		k.send(call2)
		if err := k.ended(); !strings.Contains(err.Error(), "forgotten the session") {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestCancelIsPostedAndEndsTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		s := serveHere(session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			switch {
			case m == nil:
				w.WriteHeader(http.StatusMethodNotAllowed)
			case m.Kind == jsonrpc.Request:
				stream(w)(": working")
				<-r.Context().Done()
				close(gone)
			default:
				w.WriteHeader(http.StatusAccepted)
			}
		}))
		k := open(t, streamable(s))
		k.send(call2)
		s.wait(t, 1, posted("tools/call"))
		k.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		s.wait(t, 1, posted("notifications/cancelled"))
		select {
		case <-gone:
		case <-time.After(patience):
			t.Error("the response is still open")
		}
	})
}

// The server SHOULD close the stream after the response: one that does not must not
// hold a connection for ever.
func TestStreamThatStaysOpenAfterItsAnswerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		s := serveHere(session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			if m == nil {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			stream(w)("data: %s", result2)
			<-r.Context().Done()
			close(gone)
		}))
		k := open(t, streamable(s))
		k.send(call2)
		if got, _ := k.recv(); got != result2 {
			t.Errorf("got %s", got)
		}
		select {
		case <-gone:
		case <-time.After(patience):
			t.Error("the response is still open")
		}
	})
}

// What nobody takes from the session must not be kept without a bound.
func TestStreamIsNotReadFurtherThanItsMessagesAreTaken(t *testing.T) {
	const size, many = 1 << 20, 64
	stalled := make(chan int, 1)
	s := serve(t, gets(func(_ int, w http.ResponseWriter, r *http.Request) {
		stream(w)
		block := fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"x\":\"%s\"}}\n\n", strings.Repeat("x", size))
		for n := range many {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := io.WriteString(w, block); err != nil {
				stalled <- n
				return
			}
		}
		stalled <- many
	}))
	open(t, streamable(s))
	if n := <-stalled; n > many/2 {
		t.Errorf("%d MiB were read, nobody has taken one", n)
	}
}

// The last id outlives the stream that it came on (WHATWG HTML, section 9.2.4).
func TestLastEventIDOutlivesItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveHere(gets(func(n int, w http.ResponseWriter, r *http.Request) {
			send := stream(w)
			if n == 1 {
				send("id: a\ndata:")
			}
			send("data: "+note, n)
			if n == 3 {
				<-r.Context().Done()
			}
		}))
		k := open(t, streamable(s))
		for n := range 3 {
			k.gets(fmt.Sprintf(note, n+1))
		}
		for i, v := range s.find(method("GET"))[1:] {
			if id := v.header.Get("Last-Event-ID"); id != "a" {
				t.Errorf("GET %d has Last-Event-ID %q", i+2, id)
			}
		}
	})
}

// A resumed stream that takes its id away cannot be resumed again: a GET without it
// would open another stream.
func TestResumedStreamThatTakesItsIDAwayIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveHere(resumable(func(w http.ResponseWriter) { stream(w)("id: a\ndata:") },
			func(_ int, w http.ResponseWriter, r *http.Request) { stream(w)("id:\ndata: "+note, 1) }))
		k := open(t, streamable(s))
		k.send(call2)
		k.recv()
		if f := k.fails(); f.Error.Data.Reason != "response_lost" {
			t.Errorf("got %+v", f)
		}
		if n := len(s.find(method("GET"))); n != 2 { // that of the session, and one resumption
			t.Errorf("%d GETs", n)
		}
	})
}

// A server that ends each stream at once must not be asked all the time.
func TestStreamsThatEndAtOnceAreAskedForLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveHere(gets(func(n int, w http.ResponseWriter, r *http.Request) {
			stream(w)("id: %d\ndata: "+note, n, n)
		}))
		k := open(t, streamable(s))
		go func() { // ends with the session
			for {
				if _, err := k.conn.Recv(); err != nil {
					return
				}
			}
		}()
		time.Sleep(10 * time.Minute)
		if n := len(s.find(method("GET"))); n > 200 {
			t.Errorf("%d GETs in 10 minutes", n)
		}
	})
}
