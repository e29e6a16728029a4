package acceptance

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// agent is a client of sse-server stdio.
type agent struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	log ssetest.Output
	cmd *exec.Cmd
}

// startAgent starts sse-server stdio in front of a scripted server. Its times are those of startGateway.
func startAgent(t *testing.T, script string, flags ...string) *agent {
	t.Helper()
	self, err := os.Executable()
	ssetest.Must(t, err)
	args := append([]string{"stdio", "--env", scriptVariable + "=" + script, "--log-level", "debug", "--log-format", "json",
		"--initialization-timeout", "1h", "--start-timeout", "1h", "--request-timeout", "1h"}, flags...)
	a := newAgent(t, append(args, "--", self)...)
	a.start()
	return a
}

// newAgent makes the client of a sse-server with these arguments, which start starts.
func newAgent(t *testing.T, args ...string) *agent {
	t.Helper()
	a := &agent{t: t, cmd: exec.Command(sseServer, args...)}
	a.cmd.Env = ssetest.WithState(t)
	a.cmd.Stderr = &a.log
	a.cmd.WaitDelay = 10 * time.Second // a child that outlives it would hold its stderr
	return a
}

func (a *agent) start() {
	a.t.Helper()
	var err error
	a.in, err = a.cmd.StdinPipe()
	ssetest.Must(a.t, err)
	out, err := a.cmd.StdoutPipe()
	ssetest.Must(a.t, err)
	a.out = bufio.NewReader(out)
	ssetest.Must(a.t, a.cmd.Start())
	late := time.AfterFunc(ssetest.Patience, func() { _ = a.cmd.Process.Kill() })
	a.t.Cleanup(func() {
		late.Stop()
		_ = a.cmd.Process.Kill() // unless it has left
		if a.t.Failed() {
			a.t.Logf("log of sse-server stdio:\n%s", a.log.Tail())
		}
	})
}

// post sends a request.
func (a *agent) post(id, method, params string) {
	a.t.Helper()
	a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
}

func (a *agent) send(message string) {
	a.t.Helper()
	_, err := io.WriteString(a.in, message+"\n")
	ssetest.Must(a.t, err)
}

// until returns the lines that come, up to the first one that matches.
func (a *agent) until(what string, match func(line string) bool) (lines []string) {
	a.t.Helper()
	for {
		line, err := a.out.ReadString('\n')
		if err != nil {
			a.t.Fatalf("%s has not come: %v, after %q", what, err, lines)
		}
		if lines = append(lines, line); match(line) {
			return lines
		}
	}
}

// answer returns the answer to the request with the id.
func (a *agent) answer(id string) string {
	a.t.Helper()
	lines := a.until("the answer to request "+id, func(line string) bool { return isAnswer(line, id) })
	return lines[len(lines)-1]
}

// leave ends the input, as a client does that leaves in order, and waits for the end of sse-server.
func (a *agent) leave() {
	a.t.Helper()
	ssetest.Must(a.t, a.in.Close())
	a.awaitEnd()
}

// awaitEnd waits for the end of sse-server, which ends well.
func (a *agent) awaitEnd() {
	a.t.Helper()
	_, _ = io.Copy(io.Discard, a.out)
	if err := a.cmd.Wait(); err != nil && !strings.Contains(err.Error(), exec.ErrWaitDelay.Error()) {
		a.t.Errorf("sse-server stdio: %v, want exit code 0", err)
	}
}

// awaitLearners waits until no process learns for the memory in a state directory what a server says. Nothing else ends those
// of stdio.
func awaitLearners(t *testing.T, state string) {
	locks, err := filepath.Glob(filepath.Join(state, "sse-server", "learn-*.lock"))
	ssetest.Must(t, err)
	for _, name := range locks {
		lock, err := os.Open(name)
		ssetest.Must(t, err)
		await(t, "nobody holds "+name, func() bool { return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil })
		ssetest.Must(t, lock.Close())
	}
}
