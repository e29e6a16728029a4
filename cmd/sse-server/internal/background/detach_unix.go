//go:build unix

package background

import "syscall"

// detached makes a process the leader of a session of its own: neither the end of the terminal nor a
// signal to this process group ends it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
