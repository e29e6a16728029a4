package remote_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
)

// here is a person whose links are for browsers on this machine.
type here struct{ person }

func (*here) BeginsAtPage() bool { return true }

func (*here) BeginAtPage(context.Context, string) (string, error) { return "", nil }

// Nobody is asked for a login on account of a client that a proxy brings, where the link is for this machine.
func TestClientsBehindAProxyGetNoLink(t *testing.T) {
	byProxy := asker.NewContext(t.Context(), &asker.Asker{Proxied: true})
	p := &here{person{full: "log in at L", public: "log in"}}
	_, err := remote.URL{Address: closedTo(t, "", legacyServer), Credentials: p}.Dial(byProxy)
	ssetest.WantText(t, "Dial", err, "log in")
	conn, err := remote.URL{Address: closedTo(t, "tools/call", legacyServer), Credentials: p}.Dial(byProxy)
	ssetest.Must(t, err)
	upstreamtest.Send(t, conn, upstreamtest.Initialize)
	upstreamtest.Recv(t, conn)
	upstreamtest.Send(t, conn, upstreamtest.Initialized)
	upstreamtest.Send(t, conn, upstreamtest.Call2)
	if got := upstreamtest.Recv(t, conn); !strings.Contains(got, `"error":{`) {
		t.Errorf("a call is answered with %s", got)
	}
	ssetest.Must(t, conn.Close())
	ssetest.Want(t, "questions for the client, and sessions in the place of one", p.asked.Load()+p.opened.Load(), int32(0))
}
