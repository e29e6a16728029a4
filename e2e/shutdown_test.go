package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestShutdownFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "--shutdown-timeout", "10s")
	s := openStream(t, g.url)
	s.call("1", "echo", `{"message":"ready"}`)
	s.accepted(requestJSON("2", "tools/call", callParams("sleep", `{"seconds":1}`)))
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.await("response to 2", answers("message", "2"))
	<-s.ended
	if err := g.wait(); err != nil {
		t.Errorf("exit = %v, want 0", err)
	}
	g.stopped = true
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	g := startGateway(t, append([]string{"--shutdown-timeout", "1h"}, fake(t, "--stubborn", "--fork")...)...)
	g.stopped = true
	s := openStream(t, g.url)
	s.accepted(requestJSON("1", "tools/call", callParams("hang", `{"file":"`+filepath.Join(t.TempDir(), "reached")+`"}`)))
	s.request("2", "tools/list", "{}")
	children := g.children()
	if len(children) != 2 {
		t.Fatalf("processes below the gateway = %v, want the child and its child", children)
	}
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	g.eventually("not ready while draining", func() bool {
		return strings.Contains(g.adminGet("/readyz"), "shutting down") // a second signal before that may be one with the first
	})
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := g.wait(); err == nil || strings.Contains(err.Error(), "in time") {
		t.Errorf("exit after the second signal = %v, want at once and not 0", err)
	}
	for _, p := range children {
		if !p.endsSoon() {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
			t.Errorf("process %d outlived the gateway", p.pid)
		}
	}
}
