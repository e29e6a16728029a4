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
