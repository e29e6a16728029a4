package listen

import (
	"os"

	"golang.org/x/sys/unix"
)

// setPeerTimeout sets TCP_USER_TIMEOUT (RFC 5482), which accepted connections
// inherit.
func setPeerTimeout(fd uintptr) error {
	err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(peerTimeout.Milliseconds()))
	return os.NewSyscallError("setsockopt", err)
}
