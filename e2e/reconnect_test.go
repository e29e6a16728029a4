package e2e

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Both TypeScript SDKs open a new stream by themselves when theirs is cut, and
// go on without initializing again, at each address.

func TestTypeScriptReconnectThenCall(t *testing.T) {
	forEachClient(t, reconnects, func(t *testing.T, k kind) {
		g := startGateway(t, fake(t)...)
		for _, address := range []string{g.url, strings.TrimSuffix(g.url, "/mcp") + "/sse"} {
			cutter, target := startProxy(t, address)
			c := connect(t, k, target).(*driver)
			cutter.cut()
			if _, err := c.step(within(t), "reconnected"); err != nil {
				t.Fatal(err)
			}
			wantEcho(t, c)
			ssetest.Want(t, "streams that it opened", c.saw().Streams, 2)
		}
	})
}

// Over Streamable HTTP, a client that is cut in the middle of a call comes back with
// Last-Event-ID for the answer, which the server gave meanwhile.
func TestTypeScriptIsCutInACallAndGetsTheAnswer(t *testing.T) {
	t.Parallel()
	for _, sdk := range []string{"sdk1", "client2"} {
		t.Run(sdk, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, fake(t)...)
			cutter, target := startProxy(t, g.url)
			c := startDriver(t, sdk, target, "--transport", "streamable")
			if err := c.connect(within(t)); err != nil {
				t.Fatal(err)
			}
			cut := cutter.cutAfter("id: 2-") // the first event of the response to the second POST with a request
			ssetest.Want(t, "the call that was cut", mustCall(t, c, "late", map[string]any{"message": "done"}), "done")
			select {
			case <-cut:
			default:
				t.Error("the call was not cut")
			}
			wantEcho(t, c)
		})
	}
}
