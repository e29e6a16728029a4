package remote

import (
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

const (
	dialTimeout = 10 * time.Second // of a TCP connection, and again of TLS on it
	// idleTimeout is how long a connection is kept that nothing uses. Node.js and
	// uvicorn close theirs after 5 s; a request that meets that end on its way is
	// lost, because it must not be sent twice.
	idleTimeout  = 4 * time.Second
	maxRedirects = 5
	// pingInterval is how long an HTTP/2 connection may be silent before it is
	// asked for a sign of life. On HTTP/1.1 TCP's keep-alive does that.
	pingInterval = 30 * time.Second
	// legacyFor is how long a server counts as one that needs a handshake, before
	// it is asked again: one that has been renewed would else never be noticed.
	legacyFor = time.Hour
)

// site is what the sessions with one URL share: the connections, and what they know
// of the server. It is safe for concurrent use.
type site struct {
	mu       sync.Mutex   // guards all below
	own      *http.Client // while there are sessions without a client of the user's
	sessions int          // that use it
	kind     string       // the transport that was last found; empty: none
	found    time.Time
}

// client returns the client of a session, and what must be called at the end of
// the session.
func (s *site) client(given *http.Client) (c *http.Client, release func()) {
	if given != nil {
		c := *given
		c.CheckRedirect = redirect(given.CheckRedirect)
		return &c, func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		s.own = &http.Client{Transport: newTransport(), CheckRedirect: redirect(nil)}
	}
	s.sessions++
	return s.own, sync.OnceFunc(s.release)
}

// release closes the idle connections after the last session.
func (s *site) release() {
	s.mu.Lock()
	s.sessions--
	c := s.own
	if s.sessions > 0 {
		c = nil
	}
	s.mu.Unlock()
	if c != nil {
		c.CloseIdleConnections()
	}
}

// remember notes how the server was reached.
func (s *site) remember(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kind, s.found = kind, time.Now()
}

// recall returns how the server was last reached, empty when that is not known or
// too long ago.
func (s *site) recall() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kind != TransportStateless && time.Since(s.found) > legacyFor {
		return ""
	}
	return s.kind
}

// newTransport returns a transport without a timeout for the head of a response:
// an answer as JSON has none before the server has done its work. The requests are
// bounded by who sends them.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    64, // as many as calls of some clients at a time
		MaxResponseHeaderBytes: 1 << 20,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: dialTimeout},
	}
}

// redirect returns a rule that follows no redirect which would show the headers to
// another origin, or make another method of the request's. Others are next's.
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

// session releases what it shares when it is closed.
type session struct {
	jsonrpc.Attributed
	release func()
}

// Close ends the session.
func (r *session) Close() error {
	err := r.Attributed.Close()
	r.release()
	return err
}
