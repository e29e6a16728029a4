//go:build linux || darwin || freebsd

package background

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// checkPeer returns an error unless the process at the other end of a connection to a Unix socket is one of this user:
// it has connected to the socket, or listened at it. The path of a socket does not say so where others may write to a
// directory above it.
func checkPeer(conn syscall.Conn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var uid int
	var unknown error
	if err := raw.Control(func(fd uintptr) { uid, unknown = peerUID(int(fd)) }); err != nil || unknown != nil {
		return fmt.Errorf("ask who is at the socket: %w", errors.Join(err, unknown))
	}
	if uid != os.Geteuid() {
		return fmt.Errorf("%w (%d)", errOtherUser, uid)
	}
	return nil
}
