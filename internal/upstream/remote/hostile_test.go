package remote_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
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
		k.GetsOf("1", want)
	}
	k.Send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	ssetest.Want(t, "session of the answer", s.Wait(t, 1, upstreamtest.Posted(`"id":1,"result"`))[0].Header.Get("Mcp-Session-Id"), "s-1")
}

// A kept connection that the server closes meanwhile must not swallow the answer to
// a request of its own.
func TestWhatIsNoRequestIsPostedAgainOnANewConnection(t *testing.T) {
	var first sync.Once
	s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m != nil && m.Method == "notifications/x" {
			first.Do(func() { panic(http.ErrAbortHandler) })
		}
		upstreamtest.Calls(nil)(w, r, m)
	})
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

// Nothing is left behind: soon after the last session there is no connection.
func TestLastSessionClosesItsConnections(t *testing.T) {
	var opened atomic.Int32
	closed := make(chan struct{}, 1000)
	s := httptest.NewUnstartedServer(upstreamtest.ServeHere(legacyServer))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			opened.Add(1)
		case http.StateClosed:
			closed <- struct{}{}
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	up := remote.URL{Address: s.URL}.Observed(nil, nil)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { greet(t, up) })
	}
	all.Wait()
	late := time.After(upstreamtest.Patience)
	for range opened.Load() {
		select {
		case <-closed:
		case <-late:
			t.Fatalf("%d of %d connections were closed", len(closed), opened.Load())
		}
	}
}

// A server that dies breaks all its responses. That ends the session instead of failing
// each request, so that safe requests are repeated.
func TestServerThatDiesWithARequestEndsTheSession(t *testing.T) {
	for name, tt := range map[string]struct {
		transport string
		serve     upstreamtest.Handler
		begin     func(w http.ResponseWriter) // of the response to the call
	}{
		"streamable, no head": {remote.TransportStreamable, legacyServer, func(http.ResponseWriter) {}},
		"streamable, stream":  {remote.TransportStreamable, legacyServer, func(w http.ResponseWriter) { upstreamtest.Stream(w)(": hello") }},
		"stateless, no head":  {remote.TransportStateless, modernServer, func(http.ResponseWriter) {}},
		"stateless, stream":   {remote.TransportStateless, modernServer, func(w http.ResponseWriter) { upstreamtest.Stream(w)(": hello") }},
	} {
		t.Run(name, func(t *testing.T) {
			var dead atomic.Bool // connections are closed one by one, and none must answer meanwhile
			s := upstreamtest.Serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if dead.Load() {
					panic(http.ErrAbortHandler)
				}
				if m != nil && m.Method == "tools/call" {
					tt.begin(w)
					<-r.Context().Done()
					return
				}
				tt.serve(w, r, m)
			})
			k := upstreamtest.DialTalk(t, remote.URL{Address: s.URL, Transport: tt.transport})
			k.Send(upstreamtest.Initialize)
			k.Recv()
			k.Send(upstreamtest.Initialized)
			k.Send(upstreamtest.Call2)
			s.Wait(t, 1, upstreamtest.Posted("tools/call"))
			dead.Store(true)
			s.Listener.Close()
			s.CloseClientConnections()
			if a := k.Next(); a.Err == nil || !strings.Contains(a.Err.Error(), "the server cannot be reached") {
				t.Errorf("got %s, %v", a.Msg, a.Err)
			}
		})
	}
}
