package firstprocess

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mattn/go-isatty"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
)

// RunAsChild runs the program as a child if this is the first process of a container, and returns its exit code. Such a
// process inherits every process whose parent has ended, such as the browser of a server that was killed, and must wait
// for it, or the container runs out of process ids. This process does nothing else: wait4(-1) would take the end of a
// child from os/exec.
//
// It reports false for any other process, and if systemd passes sockets, because those name this pid.
func RunAsChild() (code int, did bool) {
	if os.Getpid() != 1 || os.Getenv("LISTEN_PID") != "" {
		return 0, false
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals) // before the child is there, so that none is lost
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	attr := &syscall.SysProcAttr{}
	if isatty.IsTerminal(os.Stdin.Fd()) { // whose signals are for the child alone: twice they would mean more
		attr.Foreground, attr.Ctty = true, int(os.Stdin.Fd())
	}
	child, err := syscall.ForkExec(self, os.Args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: attr})
	if err != nil { // it is better than nothing
		fmt.Fprintf(os.Stderr, "sse-server: orphaned processes are not reaped (%v): start the container with --init\n",
			err)
		signal.Reset()
		return 0, false
	}
	go forward(signals, child) // ends with this process
	return reap(child), true
}

// forward sends a process the signals, but for those of this program itself.
func forward(signals <-chan os.Signal, to int) {
	for sig := range signals {
		switch number := sig.(syscall.Signal); number {
		case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE: // of children, of the scheduler of Go, of writes
		default:
			_ = syscall.Kill(to, number) // it may have ended
		}
	}
}

// reap waits for all processes that end, until that is the child, and returns its exit code.
func reap(child int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR), err == nil && pid != child:
		case err != nil: // there is no child
			return exit.Failure
		case status.Signaled():
			return exit.Signal + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}
