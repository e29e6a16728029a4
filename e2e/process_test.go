package e2e

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// running is a process that a test has started.
type running struct {
	t   *testing.T
	cmd *exec.Cmd
	out output // stdout
	log output // stderr
	// ended is closed when the process has ended and its pipes are read; err is
	// set before.
	ended chan struct{}
	err   error
}

// run starts a process. The test's cleanup kills it, and shows what it wrote to stderr if the
// test has failed.
func run(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	p := &running{t: t, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.log
	cmd.WaitDelay = 5 * time.Second // a child that outlives it holds its stderr; Wait reports that
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd, err)
	}
	go func() { // ends with the process
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s\n%s", cmd, p.log.Tail())
		}
	})
	return p
}

// wait waits for the process to end, and kills it when it does not.
func (p *running) wait() error {
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // the log then shows what hangs
		<-p.ended
		return errors.Join(errors.New("did not end in time"), p.err)
	}
}

// kill ends the process at once. Killing a dead one does nothing.
func (p *running) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// awaitMatch waits until the pattern matches what was printed and returns its
// first group.
func (p *running) awaitMatch(what string, printed *output, pattern *regexp.Regexp) string {
	p.t.Helper()
	var found []string
	p.eventually("printed: "+what, func() bool {
		found = pattern.FindStringSubmatch(printed.String())
		return found != nil
	})
	return found[1]
}

// eventually waits until the condition holds, and gives up when the process ends.
func (p *running) eventually(what string, condition func() bool) {
	p.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-tick.C:
		case <-p.ended:
			if !condition() {
				p.t.Fatalf("%s ended (%v) before: %s", p.cmd, p.err, what)
			}
			return
		case <-deadline:
			p.t.Fatalf("not in %v: %s", patience, what)
		}
	}
}

var firstLine = regexp.MustCompile(`^(.*)\n`)

// program is a server with a URL, which runs beside the gateway and not below it.
type program struct {
	*running
	command []string
	env     []string
	url     string
}

// startProgram starts a program whose first line on stdout is its URL.
func startProgram(t *testing.T, env []string, command ...string) *program {
	t.Helper()
	p := &program{running: &running{t: t}, command: command, env: env}
	p.start()
	return p
}

// start starts the process and waits for its URL.
func (p *program) start(more ...string) {
	p.t.Helper()
	cmd := exec.Command(p.command[0], append(p.command[1:len(p.command):len(p.command)], more...)...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = clientsDir, append(os.Environ(), p.env...), endsWithParent()
	p.running = run(p.t, cmd)
	p.url = p.awaitMatch("its URL", &p.out, firstLine)
}
