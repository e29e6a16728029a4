package main

import (
	"cmp"
	"container/list"
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

// conns is the listener of a server, and bounds its TCP connections, which watch counts. At
// the limit the connection that has been idle longest gives way to a new one: whoever keeps
// many open between requests keeps nobody out. A lower limit closes none.
// netutil.LimitListener can neither change nor wait for arrivals.
type conns struct {
	net.Listener               // set before Accept
	served       chan struct{} // closed when Serve has returned: there are no new ones

	mu       sync.Mutex        // guards what follows
	change   sync.Cond         // on mu
	open     int               // connections
	awaiting map[net.Conn]bool // those whose first request is yet to come
	idle     list.List         // of net.Conn between two requests, the one that has been idle longest first
	places   map[net.Conn]*list.Element
	leaving  map[net.Conn]bool // those that give way, and have not ended yet
	full     func()            // told once when the limit is reached, and again after there was room
	wasFull  bool
	limit    int // 0: there is none
	closed   bool
}

func newConns() *conns {
	c := &conns{served: make(chan struct{}), awaiting: map[net.Conn]bool{}, places: map[net.Conn]*list.Element{}, leaving: map[net.Conn]bool{}, full: func() {}}
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

// watch has the server tell of its connections. A request has come when it is served: while a
// server shuts down, net/http drops one that it has read.
func (c *conns) watch(s *http.Server) {
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context { return context.WithValue(ctx, c, conn) }
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			c.update(func() { c.open++; c.awaiting[conn] = true })
		case http.StateIdle:
			c.update(func() { c.places[conn] = c.idle.PushBack(conn) })
		case http.StateActive:
			c.update(func() { c.busyLocked(conn) })
		case http.StateClosed, http.StateHijacked:
			c.update(func() { c.open--; delete(c.awaiting, conn); delete(c.leaving, conn); c.busyLocked(conn) })
		}
	}
	serve := s.Handler.ServeHTTP
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.update(func() { delete(c.awaiting, r.Context().Value(c).(net.Conn)) })
		serve(w, r)
	})
}

// busyLocked notes that a connection is not idle.
func (c *conns) busyLocked(conn net.Conn) {
	if place := c.places[conn]; place != nil {
		c.idle.Remove(place)
		delete(c.places, conn)
	}
}

// Accept waits for room, which it makes if a connection is idle, and then for a connection.
func (c *conns) Accept() (net.Conn, error) {
	c.mu.Lock()
	for c.limit > 0 && c.open >= c.limit && !c.closed {
		if !c.wasFull {
			c.wasFull = true
			c.full()
		}
		if first := c.idle.Front(); first != nil && c.open-len(c.leaving) >= c.limit {
			conn := first.Value.(net.Conn)
			c.busyLocked(conn)
			c.leaving[conn] = true
			go conn.Close() // the server then tells of its end, with mu
		}
		c.change.Wait()
	}
	c.wasFull = c.wasFull && c.limit > 0 && c.open >= c.limit*9/10
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
	for len(c.awaiting) > 0 && ctx.Err() == nil {
		c.change.Wait()
	}
}
