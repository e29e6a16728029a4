//go:build unix && !linux

package stdio

import (
	"os"
	"syscall"
)

func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit reports false: this system cannot wait without reaping.
func awaitExit(int) bool { return false }

// unreadBytes reports none: this system does not tell.
func unreadBytes(*os.File) int { return 0 }
