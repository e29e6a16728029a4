package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// dialTimeout bounds how long it may take to connect to another replica.
	dialTimeout = 2 * time.Second
	// patience is how long a request waits for a replica that cannot be reached and is not silent
	// yet: one that has just died is, after silentAfter.
	patience = 7 * time.Second
	// keepIdle is how long a connection to a replica is kept without a request.
	keepIdle = 90 * time.Second
	// headDelay is how long the head of a response waits for the first bytes of its body, with which it
	// takes one packet.
	headDelay = 2 * time.Millisecond
	// maxIdle bounds the connections to one replica that are kept without a request.
	maxIdle = 1024
)

var (
	errGone        = errors.New("no replica has received the request, or none has the connection")
	errBusy        = errors.New("the replica serves too many requests of others")
	errAway        = errors.New("the replica, or NATS, cannot be reached now")
	errUnreachable = errors.New("the replica is not reachable")
	errOver        = errors.New("the node is closed")
	errDraining    = errors.New("this replica shuts down")
)

// dialError is why a replica could not be connected to: it has not got the request.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// refused reports whether nobody listens at the replica's address.
func (e *dialError) refused() bool { return errors.Is(e, syscall.ECONNREFUSED) }

// oneLine removes line ends: middleware may put headers into a URL.
var oneLine = strings.NewReplacer("\r", "", "\n", "").Replace

// newTransport returns what carries requests to other replicas. The host of their URL is the id
// of the replica.
func (n *node) newTransport() *http.Transport {
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			replica, _, _ := net.SplitHostPort(address)
			return n.dial(ctx, replica)
		},
		DisableCompression: true, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: keepIdle,
	}
}

// dial connects to a replica, and fails with a dialError.
func (n *node) dial(ctx context.Context, replica string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	tcp, err := n.dialTCP(ctx, "tcp", n.address(replica))
	if err != nil {
		return nil, &dialError{err}
	}
	conn := tls.Client(tcp, n.identity.client(replica))
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = tcp.Close()
		return nil, &dialError{fmt.Errorf("prove to be a replica, and ask for the same: %w", err)}
	}
	return conn, nil
}

// buffers are those with which responses are copied.
type buffers struct{ sync.Pool }

func (b *buffers) Get() []byte  { return *b.Pool.Get().(*[]byte) }
func (b *buffers) Put(p []byte) { b.Pool.Put(&p) }

func newBuffers() *buffers {
	return &buffers{sync.Pool{New: func() any { p := make([]byte, 32<<10); return &p }}}
}

// flight is a request that another replica serves now.
type flight struct {
	to, server string
	stream     bool                    // it is a GET
	end        context.CancelCauseFunc // ends it with one of the errors above, or a dialError
}

// takeOff notes a flight until land is called. It reports false if this replica has left.
func (n *node) takeOff(f *flight) (land func(), ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, false
	}
	n.flights[f] = struct{}{}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.flights, f)
	}, true
}

// forwardedCall is a request that is forwarded.
type forwardedCall struct {
	n     *node
	w     http.ResponseWriter
	r     *http.Request
	f     httpcheck.Forward
	began time.Time
}

// Forward has the replica that holds a connection serve a request, as httpcheck.Cluster says. It
// panics with http.ErrAbortHandler if the replica is lost after the response has begun.
func (n *node) Forward(w http.ResponseWriter, r *http.Request, f httpcheck.Forward) bool {
	owner, _, _ := strings.Cut(f.ID, ".")
	if len(owner) != idBytes || owner == n.id && !n.draining(f.Server) {
		return false
	}
	c := &forwardedCall{n, w, r, f, time.Now()}
	_, _, gone := n.state(owner) // if not, it may have the call that this request belongs to
	at, _ := n.moved.Get([2]string{f.Server, f.ID})
	_, silent, _ := n.state(at)
	if gone && !silent && c.to(at, true) || c.to(owner, false) || f.Resumes && c.resume() {
		return true
	}
	n.metrics.Forwarded(metrics.ForwardGone)
	return false
}

// resume forwards a request for a connection whose own replica is gone. It reports false if that goes on here.
func (c *forwardedCall) resume() (answered bool) {
	replicas := c.n.candidates(c.f.Server, c.f.ID)
	adopter, err := c.n.ask(c.n.adopted(c.f.Server, c.f.ID))
	switch isConnected, _, _ := c.n.state(c.n.id); {
	case err == nil:
		replicas = slices.Insert(replicas, 0, adopter)
	case errors.Is(err, nats.ErrNoResponders):
	case errors.Is(err, nats.ErrTimeout) && isConnected: // who listens there is no replica that lives
	default:
		return c.failed(errAway)
	}
	for i, replica := range replicas {
		if replica == c.n.id && !c.n.draining(c.f.Server) {
			return false
		}
		if c.to(replica, i == 0 && err == nil) {
			c.n.moved.Add([2]string{c.f.Server, c.f.ID}, replica)
			return true
		}
	}
	return false
}

// to forwards the request to a replica. It reports false if that is this one or gone, or has
// no such connection and takes no new ones. With open, no replica takes a new one.
//
// A replica that cannot be connected to has not got the request. The next step depends on its
// heartbeats, and on whether nobody listens there (refused) or nothing comes back:
//
//	heartbeats         refused             nothing
//	come               try again           try again, at last errAway
//	silent             gone                errAway
//	silent for long    gone                gone
//	it left, unknown   gone without a try
func (c *forwardedCall) to(replica string, open bool) (answered bool) {
	if replica == c.n.id {
		return false
	}
	for waited := time.Duration(0); ; waited = time.Since(c.began) {
		connected, _, _ := c.n.state(replica)
		switch {
		case !connected:
			return c.failed(errAway)
		case !c.n.mayListen(replica):
			return false
		}
		err := c.send(replica, open)
		unreached, isDial := errors.AsType[*dialError](err)
		if !isDial {
			return err == nil || c.failed(err)
		}
		_, silent, gone := c.n.state(replica)
		switch {
		case gone:
			c.n.missing(replica)
			return false
		case silent && unreached.refused():
			return false
		case silent || waited > patience:
			c.n.log.Warn("replica cannot be reached", "replica", c.n.name(replica), "err", err)
			return c.failed(errAway)
		}
		select {
		case <-time.After(time.Second):
		case <-c.r.Context().Done():
			return c.failed(context.Canceled)
		}
	}
}

// send has a replica serve the request, and writes the response. It fails if no response has
// begun. If a response is cut, it panics with http.ErrAbortHandler.
func (c *forwardedCall) send(replica string, open bool) error {
	ctx, end := context.WithCancelCause(c.r.Context())
	defer end(nil)
	var sent atomic.Bool // the replica may have got some of the request
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	land, ok := c.n.takeOff(&flight{to: replica, server: c.f.Server, stream: c.r.Method == http.MethodGet, end: end})
	if !ok {
		return errOver
	}
	defer land()
	to := &sink{w: c.w, deadline: httpanswer.NewDeadline(c.w, c.r, c.f.WriteTimeout)}
	var failed error
	var from *source
	proxy := httputil.ReverseProxy{
		Transport: c.n.transport, BufferPool: c.n.buffers, ErrorLog: c.n.silence,
		Rewrite: func(p *httputil.ProxyRequest) { c.rewrite(p, replica, open) },
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusMisdirectedRequest {
				switch r.Header.Get(refusedHeader) {
				case refusedGone:
					return errGone
				case refusedBusy:
					return errBusy
				}
			}
			c.n.metrics.ForwardBegan(time.Since(c.began))
			from = &source{ReadCloser: r.Body, to: to}
			// The sink flushes. Of a response that looks whole, ReverseProxy does not flush too.
			maps.Copy(c.w.Header(), r.Header)
			r.Body, r.Header, r.ContentLength = from, http.Header{}, 0
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	in := c.r.WithContext(ctx)
	// ReverseProxy removes what Connection lists. That is for the client's own connection to this
	// replica, and must not remove what middleware has set, the session or the credentials.
	in.Header = in.Header.Clone()
	in.Header.Del("Connection")
	in.Header.Del("Upgrade")
	proxy.ServeHTTP(to, in)
	to.end()
	cause := context.Cause(ctx)
	unreached, isDial := errors.AsType[*dialError](cmp.Or(cause, failed))
	switch {
	case failed == nil:
		c.landed(from, to, cause)
		to.deadline.Expire()
		return nil
	case c.r.Context().Err() != nil:
		return context.Canceled
	case isDial && !sent.Load():
		return unreached
	case errors.Is(failed, errGone), errors.Is(failed, errBusy):
		return failed
	case errors.Is(cause, errDraining), errors.Is(cause, errOver):
		return cause
	}
	return errUnreachable
}

// rewrite makes the request for the replica: that of the client, with all its headers, and what
// httpcheck.Forward says.
func (c *forwardedCall) rewrite(p *httputil.ProxyRequest, replica string, open bool) {
	out := p.Out
	at := *p.In.URL
	at.Scheme, at.Host, at.User, at.Opaque, at.RawQuery = "https", replica, nil, "", oneLine(at.RawQuery)
	out.URL, out.Host = &at, oneLine(cmp.Or(p.In.Host, "-"))
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := p.In.Header[name]; ok {
			out.Header[name] = values
		}
	}
	out.Header.Del("Expect")
	out.Header.Set(forwardHeader, url.Values{
		"server": {c.f.Server}, "id": {c.f.ID}, "open": {strconv.FormatBool(open)}, "principal": {c.f.Principal},
		"addr": {netip.AddrPortFrom(c.f.Addr, 0).String()},
	}.Encode())
	out.TransferEncoding, out.Trailer = nil, nil
	// Without a GetBody, http.Transport sends a body once, whatever headers the client has sent.
	out.Body, out.ContentLength, out.GetBody = http.NoBody, int64(len(c.f.Body)), nil
	if len(c.f.Body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(c.f.Body)) // of types that http.Transport sends with the head
	}
}

// landed counts a response that has begun, and panics if it is cut. A stream ends in order when
// this replica shuts down, as the client opens another one then.
func (c *forwardedCall) landed(from *source, to *sink, cause error) {
	result := metrics.ForwardOK
	switch {
	case to.failed, from.err != nil && c.r.Context().Err() != nil:
		result = metrics.ForwardCanceled
	case from.err != nil && !errors.Is(cause, errDraining):
		result = metrics.ForwardCut
	}
	c.n.metrics.Forwarded(result)
	if result == metrics.ForwardCut {
		panic(http.ErrAbortHandler)
	}
}

// sink is the client as ReverseProxy sees it. It flushes what is written, bounds how long the client
// may take to read, and keeps for landed that a write has failed: ReverseProxy would panic.
type sink struct {
	w        http.ResponseWriter
	deadline *httpanswer.Deadline

	mu     sync.Mutex  // is held while something is written; guards what follows
	head   *time.Timer // flushes the head if no byte of the body follows; nil: there is none yet, or it is over
	failed bool
}

func (s *sink) Header() http.Header { return s.w.Header() }

// WriteHeader sends the head with the first bytes of the body, or if none come soon, alone.
func (s *sink) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w.WriteHeader(status)
	s.head = time.AfterFunc(headDelay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.head != nil {
			s.writeLocked(nil)
		}
	})
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLocked(p)
	return len(p), nil
}

func (s *sink) writeLocked(p []byte) {
	if s.endHeadLocked(); !s.failed {
		_, err := s.deadline.Write(s.w, p, nil)
		s.failed = err != nil
	}
}

// end is called when nothing is written any more: the ResponseWriter may soon be another request's.
func (s *sink) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endHeadLocked()
}

func (s *sink) endHeadLocked() {
	if s.head != nil {
		s.head.Stop()
		s.head = nil
	}
}

func (s *sink) hasFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// source is the body of a response. It keeps the error that ends it for landed, and ends when the
// client has gone.
type source struct {
	io.ReadCloser
	to  *sink
	err error
}

func (s *source) Read(p []byte) (int, error) {
	if s.to.hasFailed() {
		return 0, io.EOF
	}
	n, err := s.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		s.err, err = err, io.EOF
	}
	return n, err
}

// failed answers a request that has no response with 503. It reports false if no replica has
// received the request, or none has the connection.
func (c *forwardedCall) failed(err error) (answered bool) {
	result, reason, again := metrics.ForwardUnreachable, "replica_unreachable", false
	text := "the replica of this connection was lost with the request"
	switch {
	case errors.Is(err, errGone):
		return false
	case errors.Is(err, context.Canceled):
		c.n.metrics.Forwarded(metrics.ForwardCanceled)
		return true
	case errors.Is(err, errBusy):
		result, reason, again = metrics.ForwardBusy, "server_busy", true
		text = "the replica of this connection is busy: try again later"
	case errors.Is(err, errAway), errors.Is(err, errDraining):
		c.w.Header().Set("Retry-After", "1")
		result, reason, again = metrics.ForwardUnavailable, "cluster_unavailable", true
		text = "the replica of this connection cannot be reached now: try again later"
	}
	c.n.metrics.Forwarded(result)
	id := jsonrpc.Null
	if m, err := jsonrpc.Parse(c.f.Body); err == nil && m.Kind == jsonrpc.Request {
		id = m.ID
	}
	body := append(jsonrpc.NewError(id, jsonrpc.ReasonError(text, reason, again)), '\n')
	httpanswer.WriteJSON(c.w, c.r, http.StatusServiceUnavailable, body)
	return true
}
