package remote_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

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
