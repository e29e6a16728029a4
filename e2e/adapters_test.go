package e2e

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestEachClientOverEachAdapter holds the adapters against the handlers that they
// replace: each client program, at the same time, does the same with a server of each SDK
// behind the SDK's own SSE handler and behind the adapter.
func TestEachClientOverEachAdapter(t *testing.T) {
	t.Parallel()
	own := ours("GoSDK", nil)
	ownLate := oursLate("MCPGo", nil)
	for _, test := range []struct {
		server server
		sdk    string
	}{{own, "go-sdk"}, {ownLate, "mcp-go"}} {
		for _, transport := range []string{"sse", "adapter"} {
			t.Run(test.server.name+"/"+transport, func(t *testing.T) {
				t.Parallel()
				p := startProgram(t, nil, built(t, "everything"), "-sdk", test.sdk, "-transport", transport)
				clients := slices.DeleteFunc(unlike(), func(k kind) bool { return k.over != overSSE })
				var wg sync.WaitGroup
				for _, k := range clients {
					if k.oneShot && k.discovers {
						continue
					}
					if k.name == "TypeScriptClient2Auto" && test.sdk == "mcp-go" && transport == "sse" {
						continue // this handler answers server/discover, and then refuses all else
					}
					wg.Go(func() { (&visit{t: t, server: test.server, kind: k, url: p.url, owner: k.name}).run() })
				}
				wg.Wait()
				if test.sdk == "mcp-go" && transport == "sse" {
					return // this handler cannot ask: "session does not support sampling"
				}
				forEachAsked(t, clients, p.url, test.server, func(who, tool, text string, err error) {
					if err != nil || !strings.Contains(text, who) {
						t.Errorf("%s: %s = %q, error %v, want %s in it", who, tool, text, err, who)
					}
				})
			})
		}
	}
}
