package streamable_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// gets is a session whose GETs are answered by get, with their number from 1.
func gets(get func(n int, w http.ResponseWriter, r *http.Request)) upstreamtest.Handler {
	var n atomic.Int32
	return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if r.Method == http.MethodGet {
			get(int(n.Add(1)), w, r)
			return
		}
		upstreamtest.Calls(nil)(w, r, m)
	}
}

func TestServersMessagesComeOnTheStreamOfAGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := upstreamtest.ServeHere(gets(func(_ int, w http.ResponseWriter, r *http.Request) {
			send := upstreamtest.Stream(w)
			send(": hello")
			send("event: ping\ndata: x")
			send("data: no JSON")
			send("event: message\ndata: "+upstreamtest.Note, 1)
			send("data: ["+upstreamtest.Note+","+upstreamtest.Note+"]", 2, 3)
			<-r.Context().Done()
		}))
		k := upstreamtest.Open(t, upstreamtest.Streamable(s))
		for i := range 3 {
			k.Gets(fmt.Sprintf(upstreamtest.Note, i+1))
		}
		if got := s.Find(upstreamtest.Method("GET")); len(got) != 1 || got[0].Header.Get("Last-Event-ID") != "" {
			t.Errorf("GETs: %+v", got)
		}
	})
}

// 405 is how a server says that it sends nothing unasked (MCP 2025-11-25,
// basic/transports); others say it otherwise.
func TestServerWithoutAStreamIsAskedOnce(t *testing.T) {
	for _, code := range []int{405, 400, 404, 406, 501, 200} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			s := upstreamtest.ServeHere(gets(func(_ int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }))
			k := upstreamtest.Open(t, upstreamtest.Streamable(s))
			s.Wait(t, 1, upstreamtest.Method("GET"))
			k.Ping(2)
			k.Ping(3)
			ssetest.Want(t, "GETs", len(s.Find(upstreamtest.Method("GET"))), 1)
		})
	}
}

func TestStreamOfAGetIsOpenedAgainWhereItBrokeOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := upstreamtest.ServeHere(gets(func(n int, w http.ResponseWriter, r *http.Request) {
			switch n {
			case 1:
				send := upstreamtest.Stream(w)
				send("id: a\nretry: 300\ndata: "+upstreamtest.Note, 1)
				send("id: b\ndata:")
			case 2:
				w.WriteHeader(http.StatusConflict)
			case 3:
				w.WriteHeader(http.StatusServiceUnavailable)
			case 4:
				upstreamtest.Stream(w)
				panic(http.ErrAbortHandler)
			default:
				upstreamtest.Stream(w)("data: "+upstreamtest.Note, n)
				<-r.Context().Done()
			}
		}))
		k := upstreamtest.Open(t, upstreamtest.Streamable(s))
		k.Gets(fmt.Sprintf(upstreamtest.Note, 1))
		k.Gets(fmt.Sprintf(upstreamtest.Note, 5))
		got := s.Find(upstreamtest.Method("GET"))
		for i, v := range got[1:] {
			ssetest.Want(t, "Last-Event-ID", v.Header.Get("Last-Event-ID"), "b")
			if gap := v.At.Sub(got[i].At); gap < 300*time.Millisecond {
				t.Errorf("GET %d came after %s, the server asked for 300ms", i+2, gap)
			}
		}
		k.Ping(2)
	})
}

func TestStreamThatCannotBeResumedIsBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := upstreamtest.ServeHere(gets(func(n int, w http.ResponseWriter, r *http.Request) {
			switch n {
			case 1:
				upstreamtest.Stream(w)("id: a\ndata: "+upstreamtest.Note, 1)
			case 2:
				http.Error(w, "stream replay unsupported", http.StatusBadRequest)
			default:
				upstreamtest.Stream(w)("data: "+upstreamtest.Note, n)
				<-r.Context().Done()
			}
		}))
		k := upstreamtest.Open(t, upstreamtest.Streamable(s))
		k.Gets(fmt.Sprintf(upstreamtest.Note, 1))
		k.Gets(fmt.Sprintf(upstreamtest.Note, 3))
		ssetest.Want(t, "Last-Event-ID of the third GET", s.Find(upstreamtest.Method("GET"))[2].Header.Get("Last-Event-ID"), "")
	})
}

func TestGetThatEndsTheSession(t *testing.T) {
	for name, tt := range map[string]struct {
		second func(w http.ResponseWriter)
		want   string
	}{
		"forgotten, 404": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, "forgotten the session"},
		"forgotten, 400": {func(w http.ResponseWriter) {
			http.Error(w, "Invalid or missing session ID", http.StatusBadRequest)
		}, "forgotten the session"},
		"over the limit": {func(w http.ResponseWriter) { upstreamtest.Stream(w)("data: %s", strings.Repeat("x", 2000)) }, jsonrpc.ErrTooLong.Error()},
	} {
		upstreamtest.TestInBubble(t, name, func(t *testing.T) {
			up := upstreamtest.Streamable(upstreamtest.ServeHere(gets(func(n int, w http.ResponseWriter, r *http.Request) {
				if n > 1 {
					tt.second(w)
					return
				}
				upstreamtest.Stream(w)("data: "+upstreamtest.Note, n)
			})))
			up.MaxMessageBytes = 1000
			k := upstreamtest.Open(t, up)
			k.Gets(fmt.Sprintf(upstreamtest.Note, 1))
			ssetest.WantText(t, "ended with", k.Ended(), tt.want)
		})
	}
}
