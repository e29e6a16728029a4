package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

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
		wantTools(t, c)
		awaitRemembered(t)
		c.close()
		g.stop()

		ssetest.Must(t, os.Remove(booted))
		g = startGateway(t, args...)
		c = connect(t, k, g.url)
		wantTools(t, c)
		ssetest.Want(t, "processes for a client that looks", len(g.started()), 0)
		ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
		wantEcho(t, c)
	})
}

// So does an agent that starts sse-server itself.
func TestAgentOnStdioHasItsToolsBeforeTheServerHasBooted(t *testing.T) {
	t.Parallel()
	booted := filepath.Join(t.TempDir(), "booted")
	ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
	args := fake(t, "--until", booted)
	a := startAgent(t, args...)
	_, err := a.ListTools(within(t), nil)
	ssetest.Must(t, err)
	awaitRemembered(t)
	ssetest.Must(t, a.Close())

	ssetest.Must(t, os.Remove(booted))
	a = startAgent(t, args...)
	tools, err := a.ListTools(within(t), nil)
	ssetest.Must(t, err)
	ssetest.Want(t, "tools", len(tools.Tools) > 0, true)
	ssetest.Must(t, os.WriteFile(booted, nil, 0o600))
	ssetest.Want(t, "echo", a.call(t, "echo", map[string]any{"message": "hi"}), "hi")
	ssetest.Must(t, a.Close())
}

func wantTools(t *testing.T, c client) {
	t.Helper()
	tools, err := c.listTools(within(t))
	if err != nil || !slices.Contains(tools, "echo") {
		t.Fatalf("tools = %v, %v, want echo among them", tools, err)
	}
}

// awaitRemembered waits until what the server of the test has said is kept.
func awaitRemembered(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); !ssetest.Remembered(t); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("what the server said was not kept")
		}
	}
}
