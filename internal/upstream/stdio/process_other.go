//go:build !unix

package stdio

import (
	"os"
	"syscall"
)

func processAttr() *syscall.SysProcAttr { return nil }

// awaitExit reports false: this system cannot wait without reaping.
func awaitExit(int) bool { return false }

// terminateGroup ends p: this system has neither SIGTERM nor process groups.
func terminateGroup(p *os.Process) error { return p.Kill() }

// killGroup ends p.
func killGroup(p *os.Process) error { return p.Kill() }

func signalled(*os.ProcessState) bool { return false }

func exitText(s *os.ProcessState) string { return s.String() }

// writeNow writes nothing: this system's pipes may make it wait.
func writeNow(*os.File, []byte) int { return 0 }

// unreadBytes reports none: this system does not tell.
func unreadBytes(*os.File) int { return 0 }
