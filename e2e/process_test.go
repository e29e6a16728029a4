package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// program is a server with a URL, which runs beside the gateway and not below it.
type program struct {
	t       *testing.T
	command []string
	env     []string
	cmd     *exec.Cmd
	errOut  output
	ended   chan struct{} // closed when the process has ended
	url     string
}

// startProgram starts a program whose first line on stdout is its URL. The
// test's cleanup kills it.
func startProgram(t *testing.T, env []string, command ...string) *program {
	t.Helper()
	p := &program{t: t, command: command, env: env}
	p.start()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s\n%s", strings.Join(command, " "), p.errOut.Tail())
		}
	})
	return p
}

// start starts the process and waits for its URL.
func (p *program) start(more ...string) {
	p.t.Helper()
	p.cmd = exec.Command(p.command[0], append(p.command[1:len(p.command):len(p.command)], more...)...)
	p.cmd.Dir = clientsDir
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stderr = &p.errOut
	p.cmd.SysProcAttr = endsWithParent()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatalf("start %s: %v", p.command, err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatalf("start %s: %v", p.command, err)
	}
	cmd, ended, first := p.cmd, make(chan struct{}), make(chan string, 1)
	p.ended = ended
	go func() { // ends with the process; kill waits for it
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			select {
			case first <- lines.Text():
			default: // only the first line says something
			}
		}
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	select {
	case p.url = <-first:
	case <-ended:
		p.t.Fatalf("%s ended before it listened:\n%s", p.command, p.errOut.Tail())
	case <-time.After(patience):
		p.kill()
		p.t.Fatalf("%s did not listen in %v:\n%s", p.command, patience, p.errOut.Tail())
	}
}

// kill ends the process at once. Killing a dead one does nothing.
func (p *program) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}
