//go:build agents

package agents

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// patience bounds every wait for something that should come at once.
const patience = time.Minute

// gateway is a running sse-server. It can be restarted at the same address.
type gateway struct {
	t     *testing.T
	args  []string
	addr  string
	state string // its state directory
	cmd   *exec.Cmd
	ended chan error // has the end of cmd
	log   ssetest.Output
}

// startGateway starts sse-server with its own defaults before a command, with a directory for its
// state, and returns when it serves. Without a command, flags name a configuration with servers. The test's cleanup
// stops it.
func startGateway(t *testing.T, state string, command []string, flags ...string) *gateway {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ssetest.Must(t, err)
	g := &gateway{t: t, addr: l.Addr().String(), state: state}
	ssetest.Must(t, l.Close())
	g.args = append([]string{"--addr", g.addr, "--log-level", "debug"}, flags...)
	if len(command) > 0 {
		g.args = append(append(g.args, "--"), command...)
	}
	g.start()
	t.Cleanup(func() {
		g.stop()
		if t.Failed() {
			t.Logf("the gateway:\n%s", g.log.Tail())
		}
	})
	return g
}

func (g *gateway) start() {
	g.t.Helper()
	g.cmd = exec.Command(sseServer(g.t), g.args...)
	g.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+g.state)
	g.cmd.Stdout, g.cmd.Stderr = &g.log, &g.log
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	g.cmd.WaitDelay = 5 * time.Second
	ssetest.Must(g.t, g.cmd.Start())
	ended := make(chan error, 1)
	go func(cmd *exec.Cmd) { ended <- cmd.Wait() }(g.cmd) // ends with the process
	g.ended = ended
	g.awaitListening()
}

// awaitListening waits until the gateway takes connections.
func (g *gateway) awaitListening() {
	g.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		conn, err := net.Dial("tcp", g.addr)
		if err == nil {
			_ = conn.Close() // it was opened for this
			return
		}
		select {
		case err := <-g.ended:
			g.ended <- err
			g.t.Fatalf("sse-server ended: %v\n%s", err, g.log.Tail())
		default:
		}
	}
	g.t.Fatalf("sse-server does not listen on %s\n%s", g.addr, g.log.Tail())
}

// stop ends the gateway as an operator does.
func (g *gateway) stop() {
	g.t.Helper()
	_ = g.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case err := <-g.ended:
		g.ended <- err
		if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			g.t.Errorf("sse-server after SIGTERM: %v", err)
		}
	case <-time.After(patience):
		_ = g.cmd.Process.Kill()
		g.t.Error("sse-server does not end")
		<-g.ended
	}
}

// restart stops the gateway, and starts it again at the same address.
func (g *gateway) restart() {
	g.t.Helper()
	g.stop()
	g.start()
}

func (g *gateway) url(path string) string { return fmt.Sprintf("http://%s%s", g.addr, path) }
