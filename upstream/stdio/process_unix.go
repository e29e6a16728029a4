//go:build unix && !linux

package stdio

import "syscall"

func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit reports false: this system cannot wait without reaping.
func awaitExit(int) bool { return false }
