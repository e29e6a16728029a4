package remote

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/internal/upstream/httpsse"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	dialTimeout = 10 * time.Second // of a TCP connection, and again of TLS on it
	// idleTimeout is how long an idle connection is kept. Node.js and uvicorn close
	// theirs after 5 s. A request on a connection that the server closes meanwhile is
	// lost, because it must not be sent twice.
	idleTimeout  = 4 * time.Second
	maxRedirects = 5
	// longDial is when a session that waits for the endpoint of HTTP+SSE is what keeps its server from answering.
	longDial = time.Second
	// pingInterval is how long an HTTP/2 connection may be silent before a ping. For
	// HTTP/1.1 TCP's keep-alive does the same.
	pingInterval = 30 * time.Second
	// legacyFor is how long a server counts as one that needs a handshake. Then it is
	// asked again, because it may have been upgraded.
	legacyFor = time.Hour
	// needsLoginFor is how long a server that answers initialize to anybody counts as one that wants a login for its
	// tools. Then it is asked again: it may be open now.
	needsLoginFor = 10 * time.Minute
)

// site is what the sessions with one URL share: the HTTP client, the transport that was
// found, and the limits of the log. It is safe for concurrent use.
type site struct {
	own   *http.Client // for sessions without a client of the user's
	lines *throttle.Lines
	// waiting counts the sessions that have waited long for the endpoint of HTTP+SSE.
	waiting atomic.Int32

	mu       sync.Mutex // guards all below
	sessions int        // sessions that use own
	kind     string     // the transport that was last found; empty: none
	found    time.Time  // when
	shared   Authorizer // of the sessions whose clients have no credentials; nil before the first
	refused  time.Time  // when the list of tools was last refused to somebody who was not logged in; zero: never
}

func newSite() *site {
	return &site{own: &http.Client{Transport: newTransport(), CheckRedirect: redirect(nil)}, lines: throttle.NewLines()}
}

// dialSSE opens a session over HTTP+SSE.
func (s *site) dialSSE(ctx context.Context, x *exchange.Endpoint) (*httpsse.Conn, error) {
	late := time.AfterFunc(longDial, func() { s.waiting.Add(1) })
	defer func() {
		if !late.Stop() {
			s.waiting.Add(-1)
		}
	}()
	return httpsse.Dial(ctx, x)
}

// authorizer returns what authorizes the requests of a session.
func (s *site) authorizer(c Credentials, client func() string, log *slog.Logger) Authorizer {
	if client != nil {
		return c.Authorizer(client, log)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil {
		s.shared = c.Authorizer(nil, log)
	}
	return s.shared
}

// client returns the HTTP client for a session. The caller must call release at the
// end of the session.
func (s *site) client(given *http.Client) (c *http.Client, release func()) {
	if given != nil {
		c := *given
		c.CheckRedirect = redirect(given.CheckRedirect)
		return &c, func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	return s.own, sync.OnceFunc(s.endSession)
}

// endSession closes the idle connections after the last session.
func (s *site) endSession() {
	s.mu.Lock()
	s.sessions--
	last := s.sessions == 0
	s.mu.Unlock()
	if last {
		s.own.CloseIdleConnections()
	}
}

// noteToolsNeedLogin notes that the list of tools was refused to somebody who is not logged in.
func (s *site) noteToolsNeedLogin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = time.Now()
}

// toolsNeedLogin reports whether it was lately.
func (s *site) toolsNeedLogin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.refused.IsZero() && time.Since(s.refused) < needsLoginFor
}

// remember notes the transport that reached the server.
func (s *site) remember(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kind, s.found = kind, time.Now()
}

// recall returns the transport that was last found; empty if there is none, or if the
// server may have been upgraded since.
func (s *site) recall() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kind != TransportStateless && time.Since(s.found) > legacyFor {
		return ""
	}
	return s.kind
}

// newTransport returns a transport without a timeout for the head of a response: a
// server that answers as JSON sends the head after it has done the work. The senders
// bound their requests.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    64, // for the calls of several clients at a time
		MaxResponseHeaderBytes: 1 << 20,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: dialTimeout},
	}
}

// redirect returns a rule that follows no redirect to another origin, which must not
// get the headers, or with another method. It leaves the others to next.
func redirect(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		switch {
		case !exchange.SameOrigin(req.URL, via[0].URL), req.Method != via[0].Method, len(via) > maxRedirects:
			return http.ErrUseLastResponse
		case next != nil:
			return next(req, via)
		}
		return nil
	}
}

// releasing is a session that releases its HTTP client when it is closed, and is noted for those who come while nobody
// is logged in.
type releasing struct {
	jsonrpc.Attributed
	release func()
	notes   *notes      // nil: there are none
	watch   *loginWatch // nil: nobody can be asked for a login
	retire  func(request jsonrpc.ID, why error)
}

var _ jsonrpc.Stateless = (*releasing)(nil)

// Stateless reports whether the server is one of MCP 2026-07-28.
func (r *releasing) Stateless() bool {
	c, ok := r.Attributed.(jsonrpc.Stateless)
	return ok && c.Stateless()
}

// Send sends a message.
func (r *releasing) Send(msg []byte) error {
	r.notes.sent(msg)
	r.watch.sent(msg)
	return r.Attributed.Send(msg)
}

// Recv is RecvFor without the request.
func (r *releasing) Recv() ([]byte, error) {
	msg, _, err := r.RecvFor()
	return msg, err
}

// RecvFor returns the next message.
func (r *releasing) RecvFor() (msg []byte, request jsonrpc.ID, err error) {
	for {
		msg, request, err = r.Attributed.RecvFor()
		if err != nil {
			return msg, request, err
		}
		r.notes.received(msg)
		refused := r.watch.received(msg)
		if refused == "" || r.retire == nil {
			return msg, request, nil
		}
		r.retire(refused, errNeedsLogin)
	}
}

// OnRetire sets what is called when the session needs a login: see multiplex.Retirable.
func (r *releasing) OnRetire(retire func(request jsonrpc.ID, why error)) { r.retire = retire }

// Close ends the session, and releases the HTTP client.
func (r *releasing) Close() error {
	err := r.Attributed.Close()
	r.release()
	r.notes.close()
	return err
}
