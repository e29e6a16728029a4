package listen

import (
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// setPeerTimeout sets TCP_USER_TIMEOUT (RFC 5482), which accepted connections
// inherit.
func setPeerTimeout(fd uintptr, timeout time.Duration) error {
	if timeout <= 0 {
		return nil
	}
	err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(min(timeout.Milliseconds(), math.MaxInt32)))
	return os.NewSyscallError("setsockopt", err)
}
