//go:build !linux && !darwin && !freebsd

package background

import "syscall"

// checkPeer returns nil: this system does not say whose the process at the other end of a socket is.
func checkPeer(syscall.Conn) error { return nil }
