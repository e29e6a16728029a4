package listen

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

// peerTimeout ends the TCP connection of a client that has vanished, where the system
// allows: a heartbeat, every 15 s, is what it leaves without an acknowledgement.
// Elsewhere keepAlive finds it, within 45 s.
const peerTimeout = 30 * time.Second

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3}

// listenTCP takes a TCP address.
func listenTCP(ctx context.Context, addr string) (net.Listener, error) {
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
// the limit the connection that has been idle longest gives way to a new one, and without idle
// ones that whose first request is late: whoever opens many, and asks for nothing, keeps nobody
// out for long. A lower limit closes none.
// netutil.LimitListener can neither change nor wait for arrivals.
//
// A limit for each address would not be that of max-connections-per-ip: with tokens that is
// one for each principal there, whom a TCP connection does not name.
type conns struct {
	net.Listener               // set before Accept
	served       chan struct{} // closed when Serve has returned: there are no new ones

	mu       sync.Mutex // guards what follows
	change   sync.Cond  // on mu
	open     int        // connections
	awaiting list.List  // of arrival, those whose first request is yet to come, in their order
	idle     list.List  // of net.Conn between two requests, the one that has been idle longest first
	places   map[net.Conn]listPlace
	leaving  map[net.Conn]bool // those that give way, and have not ended yet
	tls      func()            // told when a client speaks TLS; nil: the server does
	full     func()            // told once when the limit is reached, and again after there was room
	wasFull  bool
	limit    int // 0: there is none
	closed   bool
	device   string   // where spare descriptors come from
	spare    *os.File // a descriptor for who comes when there are no others; nil: there is none now
}

// arrival is a connection whose first request is yet to come.
type arrival struct {
	net.Conn
	at time.Time
}

// listPlace is where a connection is in one of the lists.
type listPlace struct {
	in *list.List
	at *list.Element
}

func newConns() *conns {
	c := &conns{device: os.DevNull, served: make(chan struct{}), places: map[net.Conn]listPlace{},
		leaving: map[net.Conn]bool{}, full: func() {}}
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
// server shuts down, net/http drops one that it has read. A client that has sent half of one still waits.
func (c *conns) watch(s *http.Server) {
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context { return context.WithValue(ctx, c, conn) }
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			c.update(func() { c.open++; c.putLocked(conn, &c.awaiting, arrival{conn, time.Now()}) })
		case http.StateIdle:
			c.update(func() { c.putLocked(conn, &c.idle, conn) })
		case http.StateClosed, http.StateHijacked:
			c.update(func() { c.open--; delete(c.leaving, conn); c.busyLocked(conn) })
		}
	}
	serve := s.Handler.ServeHTTP
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.update(func() { c.busyLocked(r.Context().Value(c).(net.Conn)) })
		serve(w, r)
	})
}

// putLocked puts a connection, which is v there, at the end of a list.
func (c *conns) putLocked(conn net.Conn, in *list.List, v any) {
	c.busyLocked(conn)
	c.places[conn] = listPlace{in, in.PushBack(v)}
}

// busyLocked notes that a connection does not wait for a request.
func (c *conns) busyLocked(conn net.Conn) {
	if p, ok := c.places[conn]; ok {
		p.in.Remove(p.at)
		delete(c.places, conn)
	}
}

// giveWayLocked closes the connection that has been idle longest, or if there is none that
// whose first request is late. It returns after which time one will be late, 0 if none will.
func (c *conns) giveWayLocked() (late time.Duration) {
	var conn net.Conn
	if first := c.idle.Front(); first != nil {
		conn = first.Value.(net.Conn)
	} else if first := c.awaiting.Front(); first != nil {
		a := first.Value.(arrival)
		late = arrivalTime - time.Since(a.at)
		if late > 0 {
			return late
		}
		conn = a.Conn
	} else {
		return 0
	}
	c.busyLocked(conn)
	c.leaving[conn] = true
	go conn.Close() // the server then tells of its end, with mu
	return 0
}

// Accept waits for room, which it makes if a connection waits for a request, and then for a
// connection. While the process has no descriptors left, each one that comes is answered with
// 503 and closed: net/http would let it wait until there are some.
func (c *conns) Accept() (net.Conn, error) {
	for {
		c.makeRoom()
		c.openSpare()
		conn, err := c.Listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			c.update(func() { c.giveWayLocked() })
			conn, err = c.acceptBySpare(err)
		}
		if conn != nil && c.tls != nil {
			conn = &listening{Conn: conn, tls: c.tls}
		}
		if conn != nil || err != nil {
			return conn, err
		}
	}
}

// listening is a connection to a server without TLS, which calls tls if the client begins with that.
// net/http answers such a client with 400, which its user does not see, and logs nothing.
type listening struct {
	net.Conn
	tls   func()
	heard bool // used by the one reader
}

// tlsHandshake is the first byte of a TLS connection (RFC 8446 5.1).
const tlsHandshake = 22

func (l *listening) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if n > 0 && !l.heard {
		l.heard = true
		if p[0] == tlsHandshake {
			l.tls()
		}
	}
	return n, err
}

// makeRoom waits until another connection may come.
func (c *conns) makeRoom() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.limit > 0 && c.open >= c.limit && !c.closed {
		if !c.wasFull {
			c.wasFull = true
			c.full()
		}
		if c.open-len(c.leaving) >= c.limit {
			if late := c.giveWayLocked(); late > 0 {
				defer time.AfterFunc(late, func() { c.update(func() {}) }).Stop()
			}
		}
		c.change.Wait()
	}
	c.wasFull = c.wasFull && c.limit > 0 && c.open >= c.limit*9/10
}

// acceptBySpare waits for a connection with the spare descriptor. If there is still no other
// when one has come, it answers that and returns none; without a spare it returns err.
func (c *conns) acceptBySpare(err error) (net.Conn, error) {
	var spare *os.File
	c.update(func() { spare, c.spare = c.spare, nil })
	if spare == nil {
		return nil, err
	}
	_ = spare.Close()
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if c.openSpare() {
		return conn, nil
	}
	_ = conn.SetDeadline(time.Now().Add(refusalTime))
	_, _ = conn.Read(make([]byte, 4<<10)) // what is not read would make a reset of the answer
	_, _ = conn.Write([]byte(noDescriptors))
	_ = conn.Close()
	return nil, nil
}

// openSpare reports whether there is a spare descriptor now.
func (c *conns) openSpare() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spare == nil && !c.closed {
		c.spare, _ = os.Open(c.device)
	}
	return c.spare != nil
}

// refusalTime bounds the answer to a connection for which there is no descriptor: others wait
// meanwhile.
const refusalTime = 100 * time.Millisecond

const noDescriptors = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n" +
	"Content-Type: text/plain\r\nContent-Length: 38\r\n\r\nthe gateway is out of file descriptors"

// Close ends Accept. Connections stay.
func (c *conns) Close() error {
	c.update(func() {
		c.closed = true
		if c.spare != nil {
			_ = c.spare.Close()
			c.spare = nil
		}
	})
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
	for c.awaiting.Len() > 0 && ctx.Err() == nil {
		c.change.Wait()
	}
}
