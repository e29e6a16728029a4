//go:build !unix

package stdio

import (
	"os"
	"syscall"
)

func processAttr() *syscall.SysProcAttr { return nil }

// awaitExit reports that it cannot wait without reaping here.
func awaitExit(int) bool { return false }

// terminateGroup ends p: there is neither SIGTERM nor a process group here.
func terminateGroup(p *os.Process) error { return p.Kill() }

// killGroup ends p.
func killGroup(p *os.Process) error { return p.Kill() }

func signalled(*os.ProcessState) bool { return false }

func exitText(s *os.ProcessState) string { return s.String() }
