package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// From the second start of the gateway on, each client has its tools before its server has booted, however
// long that takes, and its call waits for the boot. A client that only looks starts no process.
func TestClientHasItsToolsBeforeTheServerHasBooted(t *testing.T) {
	forEachClient(t, lasting, func(t *testing.T, k kind) {
		booted := filepath.Join(t.TempDir(), "booted")
		ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
		args := fake(t, "--until", booted)
		g := startGateway(t, args...)
		c := connect(t, k, g.url)
		wantEcho(t, c)
		remembered := filepath.Join(strings.TrimPrefix(stateOf(t), "XDG_STATE_HOME="), "sse-server", "remembered", "*.json")
		g.eventually("what the server said is kept", func() bool {
			files, _ := filepath.Glob(remembered)
			return len(files) > 0
		})
		c.close()
		g.stop()

		ssetest.Must(t, os.Remove(booted))
		g = startGateway(t, args...)
		c = connect(t, k, g.url)
		tools, err := c.listTools(within(t))
		if err != nil || !slices.Contains(tools, "echo") {
			t.Fatalf("tools = %v, %v, want echo among them", tools, err)
		}
		ssetest.Want(t, "processes for a client that looks", len(g.started()), 0)
		ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
		wantEcho(t, c)
	})
}
