package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
)

// idle waits until so many warm sessions wait for a connection.
func (g *gateway) idle(n float64) {
	g.t.Helper()
	g.eventually("the pool is full", func() bool {
		got, _ := g.metric("mcp_sse_pool_idle")
		return got == n
	})
}

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

// A warm server that has stopped reading is found out by the ping before it is
// handed out, once it has waited for a while.
func TestHungWarmSessionIsNotHandedOut(t *testing.T) {
	t.Parallel()
	g := startGateway(t, append([]string{"--warm", "1"}, fake(t)...)...)
	g.idle(1)
	first := openStream(t, g.url)
	pid := first.call("1", "pid", "{}")
	g.idle(1)
	var frozen int
	for _, child := range g.children() {
		if fmt.Sprint(child.pid) != pid {
			frozen = child.pid
			freeze(t, g, frozen)
		}
	}
	first.request("2", "tools/call", callParams("misbehave", `{"how":"late"}`)) // takes 3 s
	second := openStream(t, g.url)
	if got := second.call("1", "echo", `{"message":"m"}`); got != "m" {
		t.Errorf("echo = %q, want m", got)
	}
	g.eventually("the server that hangs has ended", func() bool {
		return !slices.ContainsFunc(g.children(), func(child process) bool { return child.pid == frozen })
	})
}

// A session whose client has left without asking anything waits for the next. Here
// there will never be another: all servers after the first take for ever to start.
func TestUnusedSessionIsUsedAgain(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	once := append([]string{"--", "sh", "-c", `mkdir "$0" || exec sleep 600; exec "$@"`, started}, fake(t)[1:]...)
	g := startGateway(t, append([]string{"--warm", "1"}, once...)...)
	for range 5 {
		g.idle(1)
		openStream(t, g.url).close()
	}
	g.idle(1)
	if got := openStream(t, g.url).call("1", "echo", `{"message":"m"}`); got != "m" {
		t.Errorf("echo = %q, want m", got)
	}
}
