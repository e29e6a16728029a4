package streamable_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// resumable is a session whose tools/call is answered by post, and whose GETs with a
// Last-Event-ID by get.
func resumable(post func(w http.ResponseWriter), get func(n int, w http.ResponseWriter, r *http.Request)) upstreamtest.Handler {
	var n atomic.Int32
	return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") != "" {
			get(int(n.Add(1)), w, r)
			return
		}
		upstreamtest.Calls(func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { post(w) })(w, r, m)
	}
}

func resumptions(v upstreamtest.Visit) bool {
	return v.Method == "GET" && v.Header.Get("Last-Event-ID") != ""
}

// MCP 2025-11-25, basic/transports, "resumability and redelivery"; SEP-1699.
func TestBrokenStreamIsResumedFromItsLastEvent(t *testing.T) {
	for name, end := range map[string]func(){"cut": func() { panic(http.ErrAbortHandler) }, "closed": func() {}} {
		upstreamtest.TestInBubble(t, name, func(t *testing.T) {
			s := upstreamtest.ServeHere(resumable(func(w http.ResponseWriter) {
				send := upstreamtest.Stream(w)
				send("id: p-0\nretry: 200\ndata:")
				send("id: p-1\ndata: "+upstreamtest.Note, 1)
				end()
			}, func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 1 { // polling: nothing yet
					upstreamtest.Stream(w)(": wait")
					return
				}
				send := upstreamtest.Stream(w)
				send("id: p-2\ndata: "+upstreamtest.Note, 2)
				send("id: p-3\ndata: %s", upstreamtest.Result2)
			}))
			k := upstreamtest.Open(t, upstreamtest.Streamable(s))
			k.Send(upstreamtest.Call2)
			for _, want := range []string{fmt.Sprintf(upstreamtest.Note, 1), fmt.Sprintf(upstreamtest.Note, 2), upstreamtest.Result2} {
				k.GetsOf("2", want)
			}
			before := s.Find(upstreamtest.Posted("tools/call"))[0].At
			for _, v := range s.Find(resumptions) {
				ssetest.Want(t, "Last-Event-ID", v.Header.Get("Last-Event-ID"), "p-1")
				if v.Header.Get("Mcp-Session-Id") != "s-1" || v.At.Sub(before) < 200*time.Millisecond {
					t.Errorf("resumed with %v after %s", v.Header, v.At.Sub(before))
				}
				before = v.At
			}
			ssetest.Want(t, "POSTs of the call", len(s.Find(upstreamtest.Posted("tools/call"))), 1)
		})
	}
}

func TestResponseThatCannotBeResumedIsLost(t *testing.T) {
	for name, tt := range map[string]struct {
		first string
		get   func(w http.ResponseWriter)
		tries int
	}{
		"no id":         {"data: " + fmt.Sprintf(upstreamtest.Note, 1), nil, 0},
		"id taken away": {"id: a\ndata: " + fmt.Sprintf(upstreamtest.Note, 1) + "\n\nid:\n", nil, 0},
		"not supported": {"id: a\ndata: " + fmt.Sprintf(upstreamtest.Note, 1), func(w http.ResponseWriter) { w.WriteHeader(400) }, 1},
		"no stream":     {"id: a\ndata: " + fmt.Sprintf(upstreamtest.Note, 1), func(w http.ResponseWriter) { upstreamtest.AnswerJSON(w, "{}") }, 1},
		"always fails":  {"id: a\ndata: " + fmt.Sprintf(upstreamtest.Note, 1), func(w http.ResponseWriter) { w.WriteHeader(503) }, 5},
	} {
		upstreamtest.TestInBubble(t, name, func(t *testing.T) {
			s := upstreamtest.ServeHere(resumable(func(w http.ResponseWriter) { upstreamtest.Stream(w)("%s", tt.first) },
				func(_ int, w http.ResponseWriter, r *http.Request) { tt.get(w) }))
			k := upstreamtest.Open(t, upstreamtest.Streamable(s))
			k.Send(upstreamtest.Call2)
			k.Recv()
			k.WantError("2", `"code":-32603`, `"reason":"response_lost","retryable":false`)
			ssetest.Want(t, "attempts to resume", len(s.Find(resumptions)), tt.tries)
			k.Ping(3)
		})
	}
}

func TestResumptionThatIsNotFoundEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := upstreamtest.ServeHere(resumable(func(w http.ResponseWriter) { upstreamtest.Stream(w)("id: a\ndata:") },
			func(_ int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }))
		k := upstreamtest.Open(t, upstreamtest.Streamable(s))
		k.Send(upstreamtest.Call2)
		ssetest.WantText(t, "ended with", k.Ended(), "forgotten the session")
	})
}

// A cancelled call, and a stream that the server does not close after the answer, as it
// SHOULD, must not hold a connection for ever.
func TestResponseThatNobodyAwaitsIsClosed(t *testing.T) {
	for name, tt := range map[string]struct {
		begin string // of the response
		end   func(k *upstreamtest.Talk)
	}{
		"cancelled": {": working", func(k *upstreamtest.Talk) {
			k.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		}},
		"answered": {"data: " + upstreamtest.Result2, func(k *upstreamtest.Talk) { k.Recv() }},
	} {
		upstreamtest.TestInBubble(t, name, func(t *testing.T) {
			gone := make(chan struct{})
			s := upstreamtest.ServeHere(upstreamtest.Calls(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				upstreamtest.Stream(w)(tt.begin)
				<-r.Context().Done()
				close(gone)
			}))
			k := upstreamtest.Open(t, upstreamtest.Streamable(s))
			k.Send(upstreamtest.Call2)
			s.Wait(t, 1, upstreamtest.Posted("tools/call"))
			begin := time.Now()
			tt.end(k)
			<-gone
			if took := time.Since(begin); took < time.Second || took > 2*time.Second {
				t.Errorf("the response was closed after %s", took)
			}
			if name == "cancelled" {
				s.Wait(t, 1, upstreamtest.Posted("notifications/cancelled"))
			}
		})
	}
}

// A server that ends each stream at once must not be asked all the time.
func TestStreamsThatEndAtOnceAreAskedForLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := upstreamtest.ServeHere(gets(func(n int, w http.ResponseWriter, r *http.Request) {
			upstreamtest.Stream(w)("id: %d\ndata: "+upstreamtest.Note, n, n)
		}))
		k := upstreamtest.Open(t, upstreamtest.Streamable(s))
		go func() { // ends with the session
			for {
				if _, err := k.Conn.Recv(); err != nil {
					return
				}
			}
		}()
		time.Sleep(10 * time.Minute)
		if n := len(s.Find(upstreamtest.Method("GET"))); n > 200 {
			t.Errorf("%d GETs in 10 minutes", n)
		}
	})
}
