package cluster_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// lan is the network between replicas in one process, in the time of a synctest bubble. It passes
// bytes as TCP does: in order, with a window.
type lan struct {
	mu        sync.Mutex // guards what follows, and all connections
	changed   sync.Cond
	listeners map[string]*lanListener // by address
	conns     map[*lanConn]bool       // those that are open
	dead, cut map[string]bool         // by replica
	last      int                     // port
}

func newLAN() *lan {
	l := &lan{
		listeners: make(map[string]*lanListener), conns: make(map[*lanConn]bool),
		dead: make(map[string]bool), cut: make(map[string]bool),
	}
	l.changed.L = &l.mu
	return l
}

// kill ends a replica's connections and listeners for the others, as the end of its process does.
func (l *lan) kill(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead[name] = true
	for c := range l.conns {
		if c.local == name || c.remote == name {
			c.closeLocked()
		}
	}
}

// setCut makes a replica's connections pass no bytes, or pass them again with those that wait.
func (l *lan) setCut(name string, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[name] = yes
	l.changed.Broadcast()
}

// listen returns the function with which a replica listens.
func (l *lan) listen(name string) func(network, address string) (net.Listener, error) {
	return func(_, address string) (net.Listener, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if port == "0" {
			l.last++
			port = fmt.Sprint(l.last)
		}
		listener := &lanListener{lan: l, name: name, at: net.JoinHostPort(host, port)}
		l.listeners[listener.at] = listener
		return listener, nil
	}
}

// dial returns the function with which a replica connects to others.
func (l *lan) dial(name string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		defer context.AfterFunc(ctx, func() { l.mu.Lock(); defer l.mu.Unlock(); l.changed.Broadcast() })()
		l.mu.Lock()
		defer l.mu.Unlock()
		for {
			to := l.listeners[address]
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case l.cut[name] || to != nil && l.cut[to.name]:
				l.changed.Wait()
				continue
			case to == nil || l.dead[name] || l.dead[to.name]:
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
			}
			there, back := new(lanHalf), new(lanHalf)
			here := &lanConn{lan: l, local: name, remote: to.name, in: back, out: there}
			peer := &lanConn{lan: l, local: to.name, remote: name, in: there, out: back}
			l.conns[here], l.conns[peer] = true, true
			to.waiting = append(to.waiting, peer)
			l.changed.Broadcast()
			return here, nil
		}
	}
}

// lanListener is guarded by lan.mu.
type lanListener struct {
	lan      *lan
	name, at string
	waiting  []*lanConn
	closed   bool
}

func (l *lanListener) Accept() (net.Conn, error) {
	l.lan.mu.Lock()
	defer l.lan.mu.Unlock()
	for len(l.waiting) == 0 && !l.closed {
		l.lan.changed.Wait()
	}
	if l.closed {
		return nil, net.ErrClosed
	}
	c := l.waiting[0]
	l.waiting = l.waiting[1:]
	return c, nil
}

func (l *lanListener) Close() error {
	l.lan.mu.Lock()
	defer l.lan.mu.Unlock()
	l.closed = true
	if l.lan.listeners[l.at] == l {
		delete(l.lan.listeners, l.at)
	}
	for _, c := range l.waiting {
		c.closeLocked()
	}
	l.lan.changed.Broadcast()
	return nil
}

func (l *lanListener) Addr() net.Addr { return lanAddr(l.at) }

type lanAddr string

func (lanAddr) Network() string  { return "lan" }
func (a lanAddr) String() string { return string(a) }

// lanHalf is one direction of a connection.
type lanHalf struct {
	waiting []byte
	ended   bool // by the writer
	broken  bool // by the reader
}

// lanWindow bounds the bytes that wait in one direction.
const lanWindow = 64 << 10

// lanConn is one end of a connection. lan.mu guards it.
type lanConn struct {
	lan             *lan
	local, remote   string // replicas
	in, out         *lanHalf
	closed          bool
	readBy, writeBy time.Time
}

func (c *lanConn) passesLocked() bool { return !c.lan.cut[c.local] && !c.lan.cut[c.remote] }

func (c *lanConn) Read(p []byte) (int, error) {
	c.lan.mu.Lock()
	defer c.lan.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case !c.readBy.IsZero() && !time.Now().Before(c.readBy):
			return 0, os.ErrDeadlineExceeded
		case c.passesLocked() && len(c.in.waiting) > 0:
			n := copy(p, c.in.waiting)
			c.in.waiting = c.in.waiting[n:]
			c.lan.changed.Broadcast()
			return n, nil
		case c.passesLocked() && c.in.ended:
			return 0, syscall.ECONNRESET
		}
		c.lan.changed.Wait()
	}
}

func (c *lanConn) Write(p []byte) (n int, err error) {
	c.lan.mu.Lock()
	defer c.lan.mu.Unlock()
	for {
		switch room := lanWindow - len(c.out.waiting); {
		case c.closed:
			return n, net.ErrClosed
		case !c.writeBy.IsZero() && !time.Now().Before(c.writeBy):
			return n, os.ErrDeadlineExceeded
		case c.out.broken && c.passesLocked():
			return n, syscall.ECONNRESET
		case room > 0:
			part := p[n:min(n+room, len(p))]
			c.out.waiting = append(c.out.waiting, part...)
			n += len(part)
			c.lan.changed.Broadcast()
		}
		if n == len(p) {
			return n, nil
		}
		if len(c.out.waiting) == lanWindow {
			c.lan.changed.Wait()
		}
	}
}

func (c *lanConn) Close() error {
	c.lan.mu.Lock()
	defer c.lan.mu.Unlock()
	c.closeLocked()
	return nil
}

func (c *lanConn) closeLocked() {
	c.closed, c.out.ended, c.in.broken = true, true, true
	delete(c.lan.conns, c)
	c.lan.changed.Broadcast()
}

func (c *lanConn) LocalAddr() net.Addr  { return lanAddr(c.local) }
func (c *lanConn) RemoteAddr() net.Addr { return lanAddr(c.remote) }

func (c *lanConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *lanConn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.readBy, t) }

func (c *lanConn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.writeBy, t) }

func (c *lanConn) setDeadline(which *time.Time, t time.Time) error {
	c.lan.mu.Lock()
	defer c.lan.mu.Unlock()
	*which = t
	c.lan.changed.Broadcast()
	if wait := time.Until(t); !t.IsZero() && wait > 0 {
		time.AfterFunc(wait, func() { c.lan.mu.Lock(); defer c.lan.mu.Unlock(); c.lan.changed.Broadcast() })
	}
	return nil
}
