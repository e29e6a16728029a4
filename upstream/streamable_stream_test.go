package upstream_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// gets is a session whose GETs are answered by get, with their number from 1.
func gets(get func(n int, w http.ResponseWriter, r *http.Request)) handler {
	var n atomic.Int32
	return session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if r.Method == http.MethodGet {
			get(int(n.Add(1)), w, r)
			return
		}
		answerJSON(w, string(jsonrpc.NewResult(m.ID, []byte("{}"))))
	})
}

func TestServersMessagesComeOnTheStreamOfAGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveHere(gets(func(_ int, w http.ResponseWriter, r *http.Request) {
			send := stream(w)
			send(": hello")
			send("event: ping\ndata: x")
			send("data: no JSON")
			send("event: message\ndata: "+note, 1)
			send("data: ["+note+","+note+"]", 2, 3)
			<-r.Context().Done()
		}))
		k := open(t, streamable(s))
		for i := range 3 {
			k.gets(fmt.Sprintf(note, i+1))
		}
		if got := s.find(method("GET")); len(got) != 1 || got[0].header.Get("Last-Event-ID") != "" {
			t.Errorf("GETs: %+v", got)
		}
	})
}

// 405 is how a server says that it sends nothing unasked (MCP 2025-11-25,
// basic/transports); others say it otherwise.
func TestServerWithoutAStreamIsAskedOnce(t *testing.T) {
	for _, code := range []int{405, 400, 404, 406, 501, 200} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			s := serveHere(gets(func(_ int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }))
			k := open(t, streamable(s))
			s.wait(t, 1, method("GET"))
			k.ping(2)
			k.ping(3)
			if got := s.find(method("GET")); len(got) != 1 {
				t.Errorf("%d GETs", len(got))
			}
		})
	}
}

func TestStreamOfAGetIsOpenedAgainWhereItBrokeOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveHere(gets(func(n int, w http.ResponseWriter, r *http.Request) {
			switch n {
			case 1:
				send := stream(w)
				send("id: a\nretry: 300\ndata: "+note, 1)
				send("id: b\ndata:")
			case 2:
				w.WriteHeader(http.StatusConflict)
			case 3:
				w.WriteHeader(http.StatusServiceUnavailable)
			case 4:
				stream(w)
				panic(http.ErrAbortHandler)
			default:
				stream(w)("data: "+note, n)
				<-r.Context().Done()
			}
		}))
		k := open(t, streamable(s))
		k.gets(fmt.Sprintf(note, 1))
		k.gets(fmt.Sprintf(note, 5))
		got := s.find(method("GET"))
		for i, v := range got[1:] {
			if id := v.header.Get("Last-Event-ID"); id != "b" {
				t.Errorf("GET %d has Last-Event-ID %q", i+2, id)
			}
			if gap := v.at.Sub(got[i].at); gap < 300*time.Millisecond {
				t.Errorf("GET %d came after %s, the server asked for 300ms", i+2, gap)
			}
		}
		k.ping(2)
	})
}

func TestStreamThatCannotBeResumedIsBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveHere(gets(func(n int, w http.ResponseWriter, r *http.Request) {
			switch n {
			case 1:
				stream(w)("id: a\ndata: "+note, 1)
			case 2:
				http.Error(w, "stream replay unsupported", http.StatusBadRequest)
			default:
				stream(w)("data: "+note, n)
				<-r.Context().Done()
			}
		}))
		k := open(t, streamable(s))
		k.gets(fmt.Sprintf(note, 1))
		k.gets(fmt.Sprintf(note, 3))
		if got := s.find(method("GET")); got[2].header.Get("Last-Event-ID") != "" {
			t.Errorf("the third GET has Last-Event-ID %q", got[2].header.Get("Last-Event-ID"))
		}
	})
}

func TestSessionIsOverWhenAGetSaysThatItIsForgotten(t *testing.T) {
	for name, forget := range map[string]func(w http.ResponseWriter){
		"404": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"400": func(w http.ResponseWriter) {
			http.Error(w, "Invalid or missing session ID", http.StatusBadRequest)
		},
	} {
		testInBubble(t, name, func(t *testing.T) {
			s := serveHere(gets(func(n int, w http.ResponseWriter, r *http.Request) {
				if n > 1 {
					forget(w)
					return
				}
				stream(w)("data: "+note, n)
			}))
			k := open(t, streamable(s))
			k.gets(fmt.Sprintf(note, 1))
			if err := k.ended(); !strings.Contains(err.Error(), "forgotten the session") {
				t.Errorf("ended with %v", err)
			}
			_ = k.conn.Close()
			if got := s.find(method("DELETE")); len(got) != 0 {
				t.Error("a DELETE of a session that the server has forgotten")
			}
		})
	}
}

func TestMessageOverTheLimitOnTheStreamOfAGetIsDroppedAlone(t *testing.T) {
	s := serveHere(gets(func(n int, w http.ResponseWriter, r *http.Request) {
		send := stream(w)
		send("data: %s", strings.Repeat("x", 2000))
		send("data: "+note, n)
		<-r.Context().Done()
	}))
	up := streamable(s)
	up.MaxMessageBytes = 1000
	k := open(t, up)
	k.gets(fmt.Sprintf(note, 1))
}
