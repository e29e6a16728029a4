//go:build unix

package stdio

import (
	"os"
	"syscall"
)

// terminateGroup asks the process group that p leads to end.
func terminateGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGTERM) }

// killGroup ends the process group that p leads.
func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// signalled reports whether a signal ended the process.
func signalled(s *os.ProcessState) bool {
	status, ok := s.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// exitText describes how the process ended.
func exitText(s *os.ProcessState) string {
	if signalled(s) {
		return "killed by signal: " + s.Sys().(syscall.WaitStatus).Signal().String()
	}
	return s.String()
}

// writeNow writes what a pipe has room for, without waiting, and returns how much that was.
func writeNow(pipe *os.File, data []byte) (n int) {
	if conn, err := pipe.SyscallConn(); err == nil {
		_ = conn.Write(func(fd uintptr) bool { // a Write that waits has the same error, if any
			n, _ = syscall.Write(int(fd), data)
			return true
		})
	}
	return max(n, 0)
}
