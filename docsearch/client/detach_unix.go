//go:build unix

package client

import "syscall"

// detached puts a daemon into a session of its own, so that it outlives the agent, its
// terminal and its process group.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
