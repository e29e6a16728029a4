package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// killChild kills the fake server of the client and waits until the gateway has
// noticed: a call that comes before is one in flight, whose session is lost.
func killChild(t *testing.T, g *gateway, c client) (pid string) {
	t.Helper()
	pid = mustCall(t, c, "pid", map[string]any{})
	const noticed = `"msg":"session lost"`
	before := strings.Count(g.log.String(), noticed)
	kill(t, g, pid)
	g.eventually("the gateway notices the loss", func() bool {
		return strings.Count(g.log.String(), noticed) > before
	})
	return pid
}

func kill(t *testing.T, g *gateway, of string) {
	t.Helper()
	pid, err := strconv.Atoi(of)
	ssetest.Must(t, err)
	p, ok := readProcess(pid)
	if !ok {
		t.Fatalf("process %d does not run", pid)
	}
	ssetest.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	g.eventually("the killed child is reaped", func() bool {
		now, ok := readProcess(pid)
		return !ok || now.started != p.started
	})
}

// A child that is killed is replaced on the same stream; a call that it had fails, alone.
func TestKilledChildIsReplacedOnTheSameStream(t *testing.T) {
	forEachClient(t, lasting, func(t *testing.T, k kind) {
		g := startGateway(t, fake(t)...)
		c := connect(t, k, g.url)
		old := killChild(t, g, c)
		pid := mustCall(t, c, "pid", map[string]any{})
		if pid == old {
			t.Errorf("the call after the kill was answered by process %s, which is dead", old)
		}
		reached := filepath.Join(t.TempDir(), "reached")
		failed := make(chan error, 1)
		go func() { // ends with the call, which is bounded
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_, err := c.callTool(ctx, "hang", map[string]any{"file": reached})
			failed <- err
		}()
		g.eventually("the call reaches the server", func() bool {
			_, err := os.Stat(reached)
			return err == nil
		})
		kill(t, g, pid)
		assertSessionLost(t, k, <-failed)
		wantEcho(t, c)
		ssetest.Want(t, "streams that it opened", c.saw().Streams, k.streams())
	})
}

func assertSessionLost(t *testing.T, k kind, err error) {
	t.Helper()
	got := asRPCError(err)
	if got == nil {
		t.Fatalf("the call that lost its server = %v, want a JSON-RPC error", err)
	}
	if !k.noErrorData && !got.names("session_lost") {
		t.Errorf("the call that lost its server: %v, want session_lost named", got)
	}
}
