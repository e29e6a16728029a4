package e2e

import "syscall"

// endsWithParent has a process not live on when the test binary is killed.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
