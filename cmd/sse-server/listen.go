package main

import (
	"cmp"
	"context"
	"net"
	"syscall"
	"time"
)

// peerTimeout ends the TCP connection of a client that has vanished, where the system
// allows: a heartbeat, every 15 s, is what it leaves without an acknowledgement.
// Elsewhere keepAlive finds it, within 45 s.
const peerTimeout = 30 * time.Second

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3}

// listen takes a TCP address.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	config := net.ListenConfig{KeepAliveConfig: keepAlive, Control: limitPeer}
	return config.Listen(ctx, "tcp", addr)
}

// limitPeer sets peerTimeout for the connections that a socket accepts.
func limitPeer(_, _ string, socket syscall.RawConn) error {
	var err error
	failed := socket.Control(func(fd uintptr) { err = setPeerTimeout(fd) })
	return cmp.Or(failed, err)
}
