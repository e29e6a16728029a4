package main

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"sync"
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

// arrivalTime is how long a client that has connected may take for its first request once
// the server stops.
const arrivalTime = time.Second

// conns is the listener of a server, and bounds its TCP connections. note is told of each.
// A lower limit closes none.
type conns struct {
	net.Listener               // set before Accept
	served       chan struct{} // closed when Serve has returned: there are no new ones

	mu       sync.Mutex        // guards what follows
	change   sync.Cond         // on mu
	awaiting map[net.Conn]bool // the open ones, and whether their first request is yet to come
	fresh    int               // for which it is
	limit    int               // 0: there is none
	closed   bool
}

func newConns() *conns {
	c := &conns{served: make(chan struct{}), awaiting: map[net.Conn]bool{}}
	c.change.L = &c.mu
	return c
}

// update changes fields that mu guards.
func (c *conns) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.change.Broadcast()
}

// note is the ConnState of the server.
func (c *conns) note(conn net.Conn, state http.ConnState) {
	c.update(func() {
		awaiting, known := c.awaiting[conn]
		if awaiting {
			c.fresh--
		}
		switch {
		case state == http.StateNew:
			c.awaiting[conn] = true
			c.fresh++
		case state == http.StateClosed, state == http.StateHijacked:
			delete(c.awaiting, conn)
		case known:
			c.awaiting[conn] = false
		}
	})
}

// Accept waits for room, and then for a connection.
func (c *conns) Accept() (net.Conn, error) {
	c.mu.Lock()
	for c.limit > 0 && len(c.awaiting) >= c.limit && !c.closed {
		c.change.Wait()
	}
	c.mu.Unlock()
	return c.Listener.Accept()
}

// Close ends Accept. Connections stay.
func (c *conns) Close() error {
	c.update(func() { c.closed = true })
	return c.Listener.Close()
}

// stop stops accepting, and waits for the first requests of the clients that have connected,
// for at most arrivalTime: net/http would close them without an answer, also if a request is
// on its way. With the socket unit of systemd those that connect from now on wait for the
// next process.
func (c *conns) stop(ctx context.Context) {
	_ = c.Close() // what has been accepted is served
	<-c.served
	ctx, cancel := context.WithTimeout(ctx, arrivalTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.update(func() {}) })()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.fresh > 0 && ctx.Err() == nil {
		c.change.Wait()
	}
}
