package client

import "syscall"

// detached puts a daemon into a process group of its own, so that it outlives the agent.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
