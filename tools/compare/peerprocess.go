package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// program is a process under test, with all that it has started. How it ends does not matter here.
type program struct {
	cmd   *exec.Cmd
	ended chan struct{}
	said  bytes.Buffer // on both streams; read when it has ended
}

// ownGroup is a command in a process group of its own, so that what it starts ends with it. Its home and its state
// directory are empty at first.
func ownGroup(command []string, state string) *exec.Cmd {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+state, "XDG_STATE_HOME="+state)
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, time.Second
	return cmd
}

// startProgram starts a program.
func startProgram(command []string, state string) (*program, error) {
	p := &program{cmd: ownGroup(command, state), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said // one writer for both: exec copies them in one goroutine
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the program, which stop ends
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	return p, nil
}

// listens returns the program when it takes connections at addr. If it does not, it is stopped.
func (p *program) listens(addr string, timeout time.Duration) (*program, error) {
	for end := time.Now().Add(timeout); time.Now().Before(end); {
		if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			return p, conn.Close()
		}
		select {
		case <-p.ended:
			return nil, fmt.Errorf("%s has ended: %s", p.cmd.Path, &p.said)
		case <-time.After(pollEvery):
		}
	}
	p.stop()
	return nil, fmt.Errorf("%s takes no connections: %s", p.cmd.Path, &p.said)
}

// stop ends the program, and all of its group.
func (p *program) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(killAfter):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // what it has left behind
	<-p.ended
}
