package remote_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
	"github.com/mcp-sse/mcp-sse/upstream/remote"
)

// Bad input over HTTP: a call of which the server makes nonsense, and one beside it
// on the same session that must come to no harm.
func TestHostileAnswersHarmTheirRequestAlone(t *testing.T) {
	const good = `{"jsonrpc":"2.0","id":%s,"result":{"good":true}}`
	for _, tt := range []struct {
		name string
		do   func(send func(format string, args ...any), id string)
		want string // in the answer to the call
	}{
		{"answers twice", func(send func(string, ...any), id string) { send("data: "+good, id); send("data: "+good, id) }, `"good":true`},
		{"answers what nobody asked", func(send func(string, ...any), id string) { send("data: "+good, "7777"); send("data: "+good, id) }, `"good":true`},
		{"answers with null", func(send func(string, ...any), id string) { send("data: "+good, "null") }, `"good":true`},
		{"both result and error", func(send func(string, ...any), id string) {
			send(`data: {"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"m"}}`, id)
		}, `"invalid_response"`},
		{"neither", func(send func(string, ...any), id string) { send(`data: {"jsonrpc":"2.0","id":%s}`, id) }, `"invalid_response"`},
		{"id as text", func(send func(string, ...any), id string) { send("data: "+good, `"`+id+`"`) }, `"response_lost"`},
		{"not JSON", func(send func(string, ...any), id string) { send("data: hello") }, `"invalid_response"`},
		{"binary", func(send func(string, ...any), id string) { send("data: \x00\xff\xfe\x80") }, `"invalid_response"`},
		{"deep", func(send func(string, ...any), id string) { send("data: %s", strings.Repeat("[", 100_000)) }, `"invalid_response"`},
		{"many empty batches", func(send func(string, ...any), id string) { send("data: [%s[]]", strings.Repeat("[],", 10_000)) }, `"invalid_response"`},
		{"nothing", func(send func(string, ...any), id string) {}, `"response_lost"`},
		{"half and dies", func(send func(string, ...any), id string) {
			send(`data: {"jsonrpc":"2.0","id":%s,"res`, id)
			panic(http.ErrAbortHandler)
		}, `"invalid_response"`},
		{"40 MB", func(send func(string, ...any), id string) { send("data: %s", strings.Repeat("x", 40<<20)) }, `over the limit of 16777216 bytes`},
		{"40 MB of nothing", func(send func(string, ...any), id string) {
			send(": %s", strings.Repeat("x", 40<<20))
			send("data: "+good, id)
		}, `over the limit of 16777216 bytes`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begun, beside := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(beside) })
			defer release() // also after a t.Fatal, or the server's end would wait for ever
			s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch {
				case m == nil:
					w.WriteHeader(http.StatusMethodNotAllowed)
				case m.Method == "ping":
					upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, json.RawMessage("{}"))))
				case strings.Contains(string(m.Params()), "beside"):
					close(begun)
					<-beside
					upstreamtest.AnswerJSON(w, fmt.Sprintf(good, m.ID))
				default:
					tt.do(upstreamtest.Stream(w), string(m.ID))
				}
			}))
			r := assemble(t, upstreamtest.Streamable(s))
			r.call("11", "beside", "", "")
			<-begun
			r.call("12", "nonsense", "", "")
			r.answer("12", tt.want)
			release()
			r.answer("11", `"good":true`)
			r.forward(`{"jsonrpc":"2.0","id":13,"method":"ping"}`)
			r.answer("13")
		})
	}
}

func TestFloodOfNotificationsDoesNotStopRequests(t *testing.T) {
	const many = 10_000
	s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range many {
				fmt.Fprintf(w, "data: "+upstreamtest.Note+"\n\n", i)
			}
			return
		}
		upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, json.RawMessage("{}"))))
	}))
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	k.Send(`{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	notes, answered := 0, false
	for notes < many || !answered {
		if msg, _ := k.Recv(); strings.Contains(msg, `"id":5`) {
			answered = true
		} else {
			notes++
		}
	}
}

// A server may ask before it knows that the client is ready.
func TestRequestsOfTheServerBeforeInitializedArePassedOn(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case m == nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s-1")
			send := upstreamtest.Stream(w)
			send("data: " + ping)
			send("data: %s", upstreamtest.InitAnswer(m))
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
	k := upstreamtest.DialTalk(t, upstreamtest.Streamable(s))
	k.Send(upstreamtest.Initialize)
	for _, want := range []string{ping, upstreamtest.InitResult} {
		if got, id := k.Recv(); got != want || id != "1" {
			t.Errorf("got %s with request %q", got, id)
		}
	}
	k.Send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	if v := s.Wait(t, 1, upstreamtest.Posted(`"id":1,"result"`))[0]; v.Header.Get("Mcp-Session-Id") != "s-1" {
		t.Errorf("the answer was posted with %v", v.Header)
	}
}

// A kept connection that the server closes meanwhile must not swallow the answer to
// a request of its own.
func TestWhatIsNoRequestIsPostedAgainOnANewConnection(t *testing.T) {
	var first sync.Once
	s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m != nil && m.Method == "notifications/x" {
			first.Do(func() { panic(http.ErrAbortHandler) })
		}
		if m != nil && m.Method == "ping" {
			upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, json.RawMessage("{}"))))
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	s.Wait(t, 1, upstreamtest.Method("GET"))
	for i := range 3 { // from then on there is a connection to be used again
		k.Ping(i + 2)
	}
	k.Send(fmt.Sprintf(upstreamtest.Note, 1))
	got := s.Wait(t, 2, upstreamtest.Posted("notifications/x"))
	if _, sent := got[1].Header["Idempotency-Key"]; sent {
		t.Error("a header was sent that means something to the server")
	}
}

func TestCompressedResponsesAreRead(t *testing.T) {
	s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m == nil || r.Header.Get("Accept-Encoding") != "gzip" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		if m.Method == "ping" {
			w.Header().Set("Content-Type", "application/json")
			z.Write(jsonrpc.NewResult(m.ID, json.RawMessage("{}")))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(z, "data: "+upstreamtest.Note+"\n\n", 1)
		z.Flush()
		w.(http.Flusher).Flush()
		fmt.Fprintf(z, "data: %s\n\n", upstreamtest.Result2)
	}))
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	k.Send(upstreamtest.Call2)
	for _, want := range []string{fmt.Sprintf(upstreamtest.Note, 1), upstreamtest.Result2} {
		if got, _ := k.Recv(); got != want {
			t.Errorf("got %s", got)
		}
	}
	k.Ping(3)
}

func TestSessionOverHTTP2(t *testing.T) {
	seen := make(chan int, 100)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.ProtoMajor
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(body)
		upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			send := upstreamtest.Stream(w)
			if m == nil {
				send("data: "+upstreamtest.Note, 1)
				<-r.Context().Done()
				return
			}
			send("data: %s", jsonrpc.NewResult(m.ID, json.RawMessage("{}")))
		})(w, r, m)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	k := upstreamtest.Open(t, remote.URL{Address: srv.URL, Client: srv.Client(), Transport: remote.TransportStreamable})
	k.Gets(fmt.Sprintf(upstreamtest.Note, 1))
	for i := range 50 {
		k.Ping(i + 2)
	}
	_ = k.Conn.Close()
	for len(seen) > 0 {
		if v := <-seen; v != 2 {
			t.Fatalf("a request over HTTP/%d", v)
		}
	}
}

// After the last session there is no connection, whatever the sessions were.
func TestLastSessionClosesItsConnections(t *testing.T) {
	var mu sync.Mutex
	open := make(map[net.Conn]bool)
	none := make(chan struct{}, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(body)
		legacyServer(w, r, m)
	}))
	srv.Config.ConnState = func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch state {
		case http.StateNew:
			open[c] = true
		case http.StateClosed:
			delete(open, c)
		}
		if len(open) == 0 {
			select {
			case none <- struct{}{}:
			default:
			}
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	up := remote.URL{Address: srv.URL}.Observed(nil, nil)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { greet(t, up) })
	}
	all.Wait()
	late := time.After(upstreamtest.Patience / 4) // less than what idle connections live
	for {
		mu.Lock()
		n := len(open)
		mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-none:
		case <-late:
			t.Fatalf("%d connections are open", n)
		}
	}
}
