//go:build darwin || freebsd

package background

import "golang.org/x/sys/unix"

func peerUID(fd int) (int, error) {
	const ofLocalSockets = 0 // SOL_LOCAL
	peer, err := unix.GetsockoptXucred(fd, ofLocalSockets, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
