//go:build !linux

package e2e

import "syscall"

// endsWithParent is only known on Linux.
func endsWithParent() *syscall.SysProcAttr { return nil }
