// Package listen accepts TCP connections: only so many at a time, in all and from
// one address, and none for long whose client has vanished.
package listen

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/subnet"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
)

// Options are the limits of a listener.
type Options struct {
	// Max bounds the TCP connections, MaxPerAddress those from one address (one /64
	// for IPv6), loopback exempt. 0 or less: unlimited.
	Max, MaxPerAddress int
	// Exempt are the networks of proxies, whose connections are for many clients.
	Exempt []netip.Prefix
	// PeerTimeout bounds how long what was sent may stay without an acknowledgement.
	// Only Linux has it; elsewhere keep-alive probes alone find a client that has
	// vanished.
	PeerTimeout time.Duration
	// Logger gets a warning about refused connections, at a limited rate.
	Logger *slog.Logger
}

// The probes of an idle connection: one that has vanished is found within 45 s.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3}

// Listen takes a TCP address. The listener closes connections over its limits at
// once: to let them wait would keep out those of others.
func Listen(ctx context.Context, addr string, opts Options) (net.Listener, error) {
	config := net.ListenConfig{KeepAliveConfig: keepAlive, Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if failed := c.Control(func(fd uintptr) { err = setPeerTimeout(fd, opts.PeerTimeout) }); failed != nil {
			return failed
		}
		return err
	}}
	l, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if opts.Logger != nil {
		opts.Logger = throttle.NewLines().Logger(opts.Logger)
	}
	return &listener{Listener: l, opts: opts, from: map[netip.Prefix]int{}}, nil
}

type listener struct {
	net.Listener
	opts Options

	mu   sync.Mutex // guards what follows
	open int
	from map[netip.Prefix]int // open connections by address
}

// Accept returns the next connection that is within the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		addr, counted := l.address(c)
		if l.enter(addr, counted) {
			return &conn{Conn: c, leave: sync.OnceFunc(func() { l.leave(addr, counted) })}, nil
		}
		l.opts.Logger.Warn("tcp connection refused", "remote", c.RemoteAddr().String())
		_ = c.Close()
	}
}

// address returns what a connection counts for, and whether it counts for an
// address at all.
func (l *listener) address(c net.Conn) (network netip.Prefix, counted bool) {
	peer, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Prefix{}, false
	}
	addr := peer.Addr().Unmap().WithZone("")
	exempt := slices.ContainsFunc(l.opts.Exempt, func(p netip.Prefix) bool { return p.Contains(addr) })
	if addr.IsLoopback() || exempt {
		return netip.Prefix{}, false
	}
	return subnet.Of(addr), true
}

// enter counts a connection, unless it is over a limit.
func (l *listener) enter(addr netip.Prefix, counted bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opts.Max > 0 && l.open >= l.opts.Max || counted && l.opts.MaxPerAddress > 0 && l.from[addr] >= l.opts.MaxPerAddress {
		return false
	}
	l.open++
	if counted {
		l.from[addr]++
	}
	return true
}

func (l *listener) leave(addr netip.Prefix, counted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if !counted {
		return
	}
	if l.from[addr]--; l.from[addr] == 0 {
		delete(l.from, addr)
	}
}

// conn gives its place back when it is closed.
type conn struct {
	net.Conn
	leave func()
}

// CloseWrite ends what is sent, so that a client reads the last answer before the
// connection is closed.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// Close closes the connection.
func (c *conn) Close() error {
	c.leave()
	return c.Conn.Close()
}
