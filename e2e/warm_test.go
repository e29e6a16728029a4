package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// idle waits until so many warm sessions wait for a connection.
func (g *gateway) idle(n float64) {
	g.t.Helper()
	g.eventually("the pool is full", func() bool {
		got, _ := g.metric("mcp_sse_pool_idle")
		return got == n
	})
}

// untilServed returns the median time from the GET to the answer of the server.
func untilServed(t *testing.T, g *gateway, before func()) time.Duration {
	t.Helper()
	var took []time.Duration
	for range 5 {
		before()
		start := time.Now()
		s := openStream(t, g.url)
		s.request("1", "tools/list", "{}")
		took = append(took, time.Since(start))
		s.close()
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// A Node.js server takes a while to start; a connection does not wait for that.
func TestWarmSessionServesAtOnce(t *testing.T) {
	t.Parallel()
	cold := untilServed(t, startGateway(t, everything(t)...), func() {})
	g := startGateway(t, append([]string{"--warm", "2"}, everything(t)...)...)
	warm := untilServed(t, g, func() { g.idle(2) })
	t.Logf("GET to the first answer: cold %v, warm %v", cold, warm)
	if warm > cold/2 {
		t.Errorf("GET to the first answer = %v with warm sessions, %v without", warm, cold)
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
	for _, child := range g.children() {
		if fmt.Sprint(child.pid) != pid {
			freeze(t, g, child.pid)
		}
	}
	first.request("2", "tools/call", callParams("misbehave", `{"how":"late"}`)) // takes 3 s
	second := openStream(t, g.url)
	if got := second.call("1", "echo", `{"message":"m"}`); got != "m" {
		t.Errorf("echo = %q, want m", got)
	}
	if n, _ := g.metric("mcp_sse_pool_discarded_total"); n != 1 {
		t.Errorf("warm sessions discarded = %v, want the one that hangs", n)
	}
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
