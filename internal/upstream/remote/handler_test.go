package remote_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// inProcess serves a handler without a socket.
func inProcess(do upstreamtest.Handler) jsonrpc.Dialer {
	return remote.HTTPHandler(upstreamtest.ServeHere(do))
}

// A client gets what a handler has flushed before the handler writes more.
func TestHandlerIsCalledWithoutASocket(t *testing.T) {
	first := make(chan struct{})
	up := inProcess(upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		switch {
		case r.Method == http.MethodGet:
			upstreamtest.Stream(w)("data: "+upstreamtest.Note, 1)
			<-r.Context().Done()
		case m.Method == "server/discover":
			http.Error(w, "unknown", http.StatusBadRequest)
		case r.Host != "handler.invalid" || r.URL.Path != "/mcp" || r.RequestURI != "/mcp" || r.RemoteAddr == "":
			http.Error(w, fmt.Sprintf("%q %q %q %q", r.Host, r.URL.Path, r.RequestURI, r.RemoteAddr), http.StatusBadRequest)
		default:
			send := upstreamtest.Stream(w)
			send("data: "+upstreamtest.Note, 2)
			<-first
			send("data: %s", upstreamtest.Result2)
		}
	}))
	k := upstreamtest.Open(t, up)
	k.Gets(fmt.Sprintf(upstreamtest.Note, 1))
	k.Send(upstreamtest.Call2)
	k.GetsOf("2", fmt.Sprintf(upstreamtest.Note, 2))
	close(first)
	k.GetsOf("2", upstreamtest.Result2)
}

func TestHandlersContextEndsWithTheSession(t *testing.T) {
	begun, gone := make(chan struct{}), make(chan struct{})
	k := upstreamtest.Open(t, inProcess(upstreamtest.Calls(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		send := upstreamtest.Stream(w)
		send(": working")
		close(begun)
		<-r.Context().Done()
		for err := error(nil); err == nil; {
			_, err = io.WriteString(w, "data: late\n\n")
		}
		close(gone)
	})))
	k.Send(upstreamtest.Call2)
	<-begun
	_ = k.Conn.Close()
	select {
	case <-gone:
	case <-time.After(upstreamtest.Patience):
		t.Error("writes after the end work")
	}
}

func TestPanicOfAHandlerIsAnErrorOfItsRequest(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"at once": func(http.ResponseWriter) {}, "in a stream": func(w http.ResponseWriter) { upstreamtest.Stream(w)(": x") },
	} {
		t.Run(name, func(t *testing.T) {
			k := upstreamtest.Open(t, inProcess(upstreamtest.Calls(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				begin(w)
				panic("ouch")
			})))
			k.Send(upstreamtest.Call2)
			k.WantError("2", `"reason":"response_lost"`, "ouch")
			k.Ping(3)
		})
	}
}
