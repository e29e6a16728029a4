package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Clients that connect and leave take their servers with them. However fast they come, there
// are no more servers than connections, and another client is served.
func TestChildrenEndWithTheirConnections(t *testing.T) {
	t.Parallel()
	const most = 8
	farewell := filepath.Join(t.TempDir(), "farewell-of-") // each server takes a while to end
	g := startGateway(t, append([]string{"--max-connections", fmt.Sprint(most)}, fake(t, "--farewell", farewell)...)...)
	other := openStream(t, g.url)
	for i := range 24 {
		openStream(t, g.url).close()
		ssetest.Want(t, "echo", other.call(fmt.Sprint(i), "echo", `{"message":"m"}`), "m")
		if n := len(g.children()); n > most {
			t.Fatalf("%d children, want at most %d", n, most)
		}
	}
	other.close()
	g.eventually("no child", func() bool { return len(g.children()) == 0 })
}

// The gateway is killed and can do nothing more: its children must go all the same.
func TestChildrenDieWithAKilledGateway(t *testing.T) {
	t.Parallel()
	g := launch(t, fake(t, "--stubborn")...)
	g.url = g.awaitMatch("the URL of the stream", &g.out, streamURL)
	openStream(t, g.url).call("1", "echo", `{"message":"m"}`)
	children := g.children()
	g.kill()
	if len(children) != 1 {
		t.Fatalf("children = %v, want one", children)
	}
	if !children[0].endsSoon() {
		_ = syscall.Kill(children[0].pid, syscall.SIGKILL)
		t.Fatalf("process %d outlived the killed gateway", children[0].pid)
	}
}

// stop asserts that nothing is left.
func TestShutdownKillsStubbornChildren(t *testing.T) {
	t.Parallel()
	g := startGateway(t, fake(t, "--stubborn", "--fork")...)
	openStream(t, g.url).call("1", "echo", `{"message":"m"}`)
	if got := len(g.children()); got != 2 {
		t.Fatalf("processes below the gateway = %d, want the child and its child", got)
	}
	g.stop()
}

// A child has state to save; the gateway closes its input and gives it time, also
// one that was replaced because the client has capabilities of its own.
func TestShutdownLetsChildrenEndInGoodOrder(t *testing.T) {
	t.Parallel()
	hello := `{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"e2e","version":"0"}}`
	for name, replace := range map[string]func(s *stream){
		"OneChild": func(s *stream) { s.request("0", "tools/list", "{}") },
		"ReplacedWhenReady": func(s *stream) {
			s.await("the synthetic initialize", func(e event) bool { return strings.Contains(e.Data, "auto-initialize") })
			s.request("0", "initialize", hello)
		},
		"ReplacedWhileStarting": func(s *stream) { s.request("0", "initialize", hello) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			farewell := filepath.Join(t.TempDir(), "farewell-of-")
			g := startGateway(t, append([]string{"--shutdown-timeout", patience.String()}, fake(t, "--start-delay", "200ms", "--farewell", farewell)...)...)
			s := openStream(t, g.url)
			replace(s)
			children := g.children()
			s.close() // then nothing but the children holds the shutdown up
			g.stop()
			if len(children) == 0 {
				t.Error("no children before the shutdown")
			}
			for _, child := range children {
				if _, err := os.Stat(fmt.Sprint(farewell, child.pid)); err != nil {
					t.Errorf("child %d of %d was not given the time to end: %v", child.pid, len(children), err)
				}
			}
		})
	}
}

// freeze stops a process, as a debugger would, and returns when it has stopped.
func freeze(t *testing.T, g *gateway, pid int) {
	t.Helper()
	ssetest.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	g.eventually("each thread has stopped", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/stat", pid))
		return err == nil && !slices.ContainsFunc(threads, func(stat string) bool {
			thread, ok := parseProcess(0, stat)
			return ok && thread.state != "T"
		})
	})
}
