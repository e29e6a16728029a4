//go:build deploy

package deploytest

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// process is a running program. It and its children are in a process group of their own.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   ssetest.Output // stdout and stderr
	ended chan struct{}  // closed when the program has ended; err is set before
	err   error
}

// start starts a program with the environment of the test and the variables env. The
// cleanup of the test stops it, and shows what it printed if the test has failed.
func start(t *testing.T, env []string, command ...string) *process {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	return startCmd(t, cmd)
}

// startCmd is start for a program that needs more, such as descriptors.
func startCmd(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second // a child that outlives the program holds its output
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd, err)
	}
	go func() { // ends with the program; stop waits for it
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("%s\n%s", cmd, p.out.Tail())
		}
	})
	return p
}

// signal sends a signal to the program alone.
func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Errorf("%v to %s: %v", sig, p.cmd, err)
	}
}

// stop sends SIGTERM and waits for the end. It kills processes of the group that are left.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	p.wait()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // as a rule nobody is left
}

// wait waits for the end and returns how the program ended.
func (p *process) wait() error {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // the error below tells
		<-p.ended
		p.t.Errorf("%s did not end", p.cmd)
	}
	return p.err
}

// until waits until check returns nil, and fails the test if the program ends before.
func (p *process) until(what string, check func() error) {
	p.t.Helper()
	eventually(p.t, what, func() error {
		err := check()
		select {
		case <-p.ended:
			if err != nil {
				p.t.Fatalf("%s ended (%v) before: %s", p.cmd, p.err, what)
			}
		default:
		}
		return err
	})
}

// listens waits until the program accepts TCP connections at addr.
func (p *process) listens(addr string) {
	p.t.Helper()
	p.until("listen on "+addr, func() error {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// prints waits until the program has printed text.
func (p *process) prints(text string) {
	p.t.Helper()
	p.until("print "+text, func() error {
		if !strings.Contains(p.out.String(), text) {
			return errors.New("it has not")
		}
		return nil
	})
}

// eventually waits until check returns nil.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not in %v: %s: %v", patience, what, err)
		}
	}
}

// run runs a program to its end and returns what it printed. The test fails if the program
// does.
func run(t *testing.T, command ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// freeAddr returns an address of this machine at which nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ssetest.Must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}
