//go:build all

package e2e

import (
	"testing"
)

// A Node.js server takes a while to start; a connection does not wait for that.
func TestConnectionsTakeWarmSessions(t *testing.T) {
	t.Parallel()
	g := startGateway(t, append([]string{"--warm", "2"}, everything(t)...)...)
	for range 5 {
		g.idle(2)
		s := openStream(t, g.url)
		s.request("1", "tools/list", "{}")
		s.close()
	}
	if hits, _ := g.metric(`mcp_sse_pool_takes_total{result="hit"}`); hits != 5 {
		t.Errorf("connections that found a warm session = %v, want 5", hits)
	}
}

// What died while it waited is not handed out, and the pool fills again.
func TestDeadWarmSessionHarmsNobody(t *testing.T) {
	t.Parallel()
	g := startGateway(t, append([]string{"--warm", "2"}, fake(t)...)...)
	for range 3 {
		g.idle(2)
		for _, child := range g.children() {
			kill(t, g, child.pid)
		}
		s := openStream(t, g.url)
		if got := s.call("1", "echo", `{"message":"m"}`); got != "m" {
			t.Errorf("echo = %q, want m", got)
		}
		s.close()
	}
}

// idle waits until so many warm sessions wait for a connection.
func (g *gateway) idle(n float64) {
	g.t.Helper()
	g.eventually("the pool is full", func() bool {
		got, _ := g.metric("mcp_sse_pool_idle")
		return got == n
	})
}
