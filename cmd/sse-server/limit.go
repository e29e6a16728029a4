package main

import (
	"net"
	"sync"
)

// limitListener bounds the open connections that it has accepted. Those over a new limit
// stay.
type limitListener struct {
	net.Listener // set before Accept

	mu          sync.Mutex
	room        sync.Cond // on mu; there may be room
	open, limit int       // guarded by mu; limit 0: there is none
	closed      bool      // guarded by mu
}

func newLimitListener() *limitListener {
	l := &limitListener{}
	l.room.L = &l.mu
	return l
}

// change changes fields that mu guards.
func (l *limitListener) change(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.room.Broadcast()
}

// Accept waits for room, and then for a connection.
func (l *limitListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	for l.limit > 0 && l.open >= l.limit && !l.closed {
		l.room.Wait()
	}
	l.open++
	l.mu.Unlock()
	leave := sync.OnceFunc(func() { l.change(func() { l.open-- }) })
	conn, err := l.Listener.Accept()
	if err != nil {
		leave()
		return nil, err
	}
	return &limitedConn{conn, leave}, nil
}

// Close ends Accept. Connections stay.
func (l *limitListener) Close() error {
	l.change(func() { l.closed = true })
	return l.Listener.Close()
}

// limitedConn makes room for another connection when it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
