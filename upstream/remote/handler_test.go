package remote_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
	"github.com/mcp-sse/mcp-sse/upstream/remote"
)

// inProcess serves a handler without a socket, as the server of a test else does.
func inProcess(do func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message)) jsonrpc.Dialer {
	return remote.HTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(body)
		do(w, r, m)
	}))
}

func TestHandlerIsCalledWithoutASocket(t *testing.T) {
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
			send("data: %s", upstreamtest.Result2)
		}
	}))
	k := upstreamtest.Open(t, up)
	k.Gets(fmt.Sprintf(upstreamtest.Note, 1))
	k.Send(upstreamtest.Call2)
	for _, want := range []string{fmt.Sprintf(upstreamtest.Note, 2), upstreamtest.Result2} {
		if got, id := k.Recv(); got != want || id != "2" {
			t.Errorf("got %s with request %q", got, id)
		}
	}
}

func TestHandlersContextEndsWithTheSession(t *testing.T) {
	begun, gone := make(chan struct{}), make(chan struct{})
	k := upstreamtest.Open(t, inProcess(upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m == nil || m.Method != "tools/call" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
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
			k := upstreamtest.Open(t, inProcess(upstreamtest.Session(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
				switch {
				case m != nil && m.Method == "tools/call":
					begin(w)
					panic("ouch")
				case m != nil && m.Method == "ping":
					upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, []byte("{}"))))
				default:
					w.WriteHeader(http.StatusMethodNotAllowed)
				}
			})))
			k.Send(upstreamtest.Call2)
			if f := k.Fails(); string(f.ID) != "2" || f.Error.Data.Reason != "response_lost" || !strings.Contains(f.Error.Message, "ouch") {
				t.Errorf("got %+v", f)
			}
			k.Ping(3)
		})
	}
}
