//go:build unix && !linux

package stdio

import "syscall"

func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit reports that it cannot wait without reaping here.
func awaitExit(int) bool { return false }
