package remote_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
	"github.com/mcp-sse/mcp-sse/upstream/remote"
)

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

// A server that has restarted has forgotten the session.
func TestServerThatStartsAnewUnderARequestEndsTheSession(t *testing.T) {
	var renewed atomic.Bool
	s := upstreamtest.Serve(t, upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case renewed.Load():
			http.NotFound(w, r)
		case m == nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			renewed.Store(true)
			panic(http.ErrAbortHandler)
		}
	}))
	k := upstreamtest.Open(t, upstreamtest.Streamable(s))
	k.Send(upstreamtest.Call2)
	if a := k.Next(); a.Err == nil || !strings.Contains(a.Err.Error(), "forgotten the session") {
		t.Errorf("got %s, %v", a.Msg, a.Err)
	}
}

// Many responses that break at once are one question, and the server that answers it
// keeps the session.
func TestServerIsAskedOnceWhetherItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 20
		begun, asked := make(chan struct{}), make(chan struct{})
		s := upstreamtest.ServeHere(upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			switch {
			case m == nil:
				w.WriteHeader(http.StatusMethodNotAllowed)
			case m.Method == "ping":
				<-asked
				upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, []byte("{}"))))
			default:
				<-begun
				panic(http.ErrAbortHandler)
			}
		}))
		k := upstreamtest.Open(t, upstreamtest.Streamable(s))
		m, err := jsonrpc.Parse([]byte(upstreamtest.Call2))
		if err != nil {
			t.Fatal(err)
		}
		for i := range calls {
			k.Send(string(m.WithID(jsonrpc.ID(strconv.Itoa(i + 2)))))
		}
		close(begun)
		synctest.Wait()
		close(asked)
		for range calls {
			if f := k.Fails(); f.Error.Data.Reason != "response_lost" {
				t.Errorf("got %+v", f)
			}
		}
		if n := len(s.Find(upstreamtest.Posted(`"ping"`))); n != 1 {
			t.Errorf("the server was asked %d times", n)
		}
	})
}
