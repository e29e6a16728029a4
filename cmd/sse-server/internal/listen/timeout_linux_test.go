package listen

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A client that vanishes without a FIN acknowledges nothing any more.
func TestAcceptedConnectionsHaveThePeerTimeout(t *testing.T) {
	addr, accepted := open(t, Options{PeerTimeout: 30 * time.Second})
	dial(t, addr)
	c := <-accepted
	defer c.Close()
	raw, err := c.(*conn).Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]int{unix.TCP_USER_TIMEOUT: 30_000, unix.TCP_KEEPIDLE: 15, unix.TCP_KEEPINTVL: 10, unix.TCP_KEEPCNT: 3}
	_ = raw.Control(func(fd uintptr) {
		for option, value := range want {
			if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option); got != value || err != nil {
				t.Errorf("socket option %d = %d, %v, want %d", option, got, err, value)
			}
		}
	})
}

func TestAnyPeerTimeoutIsTaken(t *testing.T) {
	for _, timeout := range []time.Duration{0, 350 * time.Hour, 700 * time.Hour, 365 * 24 * time.Hour} {
		l, err := Listen(t.Context(), "127.0.0.1:0", Options{PeerTimeout: timeout})
		if err != nil {
			t.Errorf("%v: %v", timeout, err)
			continue
		}
		l.Close()
	}
}
