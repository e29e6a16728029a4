package remote_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
	"github.com/mcp-sse/mcp-sse/upstream/remote"
)

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
