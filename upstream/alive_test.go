package upstream_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// A server that dies takes all its responses along: that is the end of the session,
// and not an error of each request, so that the requests that may be are repeated.
func TestServerThatDiesWithARequestEndsTheSession(t *testing.T) {
	for name, tt := range map[string]struct {
		transport string
		serve     handler
		begin     func(w http.ResponseWriter) // of the response to the call
	}{
		"streamable, no head": {upstream.TransportStreamable, legacyServer, func(http.ResponseWriter) {}},
		"streamable, stream":  {upstream.TransportStreamable, legacyServer, func(w http.ResponseWriter) { stream(w)(": hello") }},
		"stateless, no head":  {upstream.TransportStateless, modernServer, func(http.ResponseWriter) {}},
		"stateless, stream":   {upstream.TransportStateless, modernServer, func(w http.ResponseWriter) { stream(w)(": hello") }},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				if m != nil && m.Method == "tools/call" {
					tt.begin(w)
					<-r.Context().Done()
					return
				}
				tt.serve(w, r, m)
			})
			k := dialTalk(t, upstream.URL{Address: s.URL, Transport: tt.transport})
			k.send(initialize)
			k.recv()
			k.send(initialized)
			k.send(call2)
			s.wait(t, 1, posted("tools/call"))
			s.Listener.Close()
			s.CloseClientConnections()
			if a := k.next(); a.err == nil || !strings.Contains(a.err.Error(), "the server cannot be reached") {
				t.Errorf("got %s, %v", a.msg, a.err)
			}
		})
	}
}

// One that is there again at once has forgotten the session.
func TestServerThatStartsAnewUnderARequestEndsTheSession(t *testing.T) {
	var renewed atomic.Bool
	s := serve(t, session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
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
	k := open(t, streamable(s))
	k.send(call2)
	if a := k.next(); a.err == nil || !strings.Contains(a.err.Error(), "forgotten the session") {
		t.Errorf("got %s, %v", a.msg, a.err)
	}
}

// Many responses that break at once are one question, and the server that answers it
// keeps the session.
func TestServerIsAskedOnceWhetherItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 20
		begun, asked := make(chan struct{}), make(chan struct{})
		s := serveHere(session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
			switch {
			case m == nil:
				w.WriteHeader(http.StatusMethodNotAllowed)
			case m.Method == "ping":
				<-asked
				answerJSON(w, string(jsonrpc.NewResult(m.ID, []byte("{}"))))
			default:
				<-begun
				panic(http.ErrAbortHandler)
			}
		}))
		k := open(t, streamable(s))
		m, err := jsonrpc.Parse([]byte(call2))
		if err != nil {
			t.Fatal(err)
		}
		for i := range calls {
			k.send(string(m.WithID(jsonrpc.ID(strconv.Itoa(i + 2)))))
		}
		close(begun)
		synctest.Wait()
		close(asked)
		for range calls {
			if f := k.fails(); f.Error.Data.Reason != "response_lost" {
				t.Errorf("got %+v", f)
			}
		}
		if n := len(s.find(posted(`"ping"`))); n != 1 {
			t.Errorf("the server was asked %d times", n)
		}
	})
}
