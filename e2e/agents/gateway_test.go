//go:build agents

package agents

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// patience bounds every wait for something that should come at once.
const patience = time.Minute

// gateway is a running sse-server. It can be restarted at the same address.
type gateway struct {
	t      *testing.T
	args   []string
	addr   string
	state  string // its state directory
	starts int
	cmd    *exec.Cmd
	ended  chan error // has the end of cmd
	log    ssetest.Output
}

// startGateway starts sse-server with its own defaults before a command, with a directory for its
// state, and returns when it serves. Without a command, flags name a configuration with servers. The test's cleanup
// stops it.
func startGateway(t *testing.T, state string, command []string, flags ...string) *gateway {
	t.Helper()
	g := &gateway{t: t, addr: "127.0.0.1:0", state: state}
	g.args = append([]string{"--log-level", "debug"}, flags...)
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
	g.starts++
	g.cmd = exec.Command(sseServer(g.t), append([]string{"--addr", g.addr}, g.args...)...)
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

// serving is the line of the log with the address at which the gateway serves.
var serving = regexp.MustCompile(`msg=serving addr=(\S+)`)

// awaitListening waits until the gateway serves, and notes its address, at which it starts again.
func (g *gateway) awaitListening() {
	g.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if found := serving.FindAllStringSubmatch(g.log.String(), -1); len(found) == g.starts {
			g.addr = found[len(found)-1][1]
			return
		}
		select {
		case err := <-g.ended:
			g.ended <- err
			g.t.Fatalf("sse-server ended: %v\n%s", err, g.log.Tail())
		default:
		}
	}
	g.t.Fatalf("sse-server does not serve\n%s", g.log.Tail())
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
