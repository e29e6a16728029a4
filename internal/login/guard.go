package login

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/hosts"
	"github.com/mcp-sse/mcp-sse/internal/unreached"
)

const (
	// askTimeout bounds one request to a server or an issuer.
	askTimeout = 10 * time.Second
	// maxRedirects bounds the redirects of one request for metadata.
	maxRedirects = 5
	// maxBody bounds what is read of an answer, in bytes.
	maxBody = 1 << 20
)

var (
	errInside   = errors.New("not asked: it is at an address of this machine or network, and the server is not")
	errInsecure = errors.New("not asked: it has no https")
)

// guard sends the requests of logins. It asks an address of this machine or network only if the server is there, and
// needs https but on loopback. It looks at each URL, also at those of redirects, and at the address of each connection,
// whatever DNS says. With a proxy DNS is the proxy's, and the URLs alone are looked at.
type guard struct {
	dialer          net.Dialer // of direct
	direct, proxied *http.Transport
	proxy           func(*http.Request) (*url.URL, error)

	// isConfigured says that the operator has named the issuer: all addresses may be asked, with https all the same,
	// and the issuer need not say that it has PKCE, which it gets in any case. Some have it, and do not say so.
	isConfigured bool

	mu     sync.Mutex // guards server
	server netip.Addr // of the server; zero: it is at a public address, or nothing is known of it
}

// newGuard returns a guard for a server at an address, which is zero if that is not known. transport is copied.
func newGuard(transport *http.Transport, server netip.Addr) *guard {
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport)
	}
	g := &guard{direct: transport.Clone(), proxied: transport.Clone(), proxy: transport.Proxy, server: server.Unmap()}
	g.direct.Proxy, g.direct.DisableKeepAlives, g.proxied.DisableKeepAlives = nil, true, true
	if g.proxy == nil {
		g.proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	g.dialer = net.Dialer{Timeout: askTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !g.permits(at.Addr()) {
			return errInside
		}
		return nil
	}}
	g.direct.DialContext = g.dialer.DialContext
	return g
}

// permits reports whether an address may be asked.
func (g *guard) permits(at netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at = at.Unmap()
	switch {
	case g.isConfigured, !hosts.IsInside(at), at == g.server:
		return true
	case at.IsLoopback():
		return g.server.IsLoopback()
	}
	return at.IsPrivate() && (g.server.IsPrivate() || g.server.IsLoopback())
}

// check returns an error for a URL that is not asked.
func (g *guard) check(at *url.URL) error {
	if !hosts.IsSecure(at) {
		return errInsecure
	}
	if !hosts.NamesInside(at) {
		return nil
	}
	addr, err := netip.ParseAddr(at.Hostname())
	if err != nil { // localhost
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if !g.permits(addr) {
		return errInside
	}
	return nil
}

// RoundTrip sends a request, if its URL may be asked.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := g.check(request.URL); err != nil {
		return nil, err
	}
	proxy, err := g.proxy(request)
	switch {
	case err != nil:
		return nil, err
	case proxy != nil:
		return g.proxied.RoundTrip(request)
	}
	return g.direct.RoundTrip(request)
}

// reading returns the client for metadata, which follows redirects.
func (g *guard) reading() *http.Client {
	bound := func(_ *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errors.New("too many redirects")
		}
		return nil
	}
	return &http.Client{Transport: g, Timeout: askTimeout, CheckRedirect: bound}
}

// writing returns the client for requests with something secret, which follows no redirects.
func (g *guard) writing() *http.Client {
	return &http.Client{Transport: g, Timeout: askTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// askServer sends the first request to the server itself, wherever that is, and learns its address. The answer alone
// shows it: a name may have several, and others the next time.
func (g *guard) askServer(ctx context.Context, request *http.Request) (*http.Response, error) {
	var reached netip.Addr
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if at, err := netip.ParseAddrPort(info.Conn.RemoteAddr().String()); err == nil {
			reached = at.Addr().Unmap()
		}
	}})
	proxy, err := g.proxy(request)
	if err != nil {
		return nil, err
	}
	transport := g.proxied.Clone() // dials any address
	transport.Proxy = http.ProxyURL(proxy)
	client := &http.Client{Transport: transport, Timeout: askTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(request.WithContext(traced))
	if err != nil {
		return nil, err
	}
	if proxy != nil { // reached is the proxy
		reached, _ = netip.ParseAddr(request.URL.Hostname())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if hosts.IsInside(reached) {
		g.server = reached
	}
	return resp, nil
}

// serverAddr returns the address of the server if that is inside; else zero.
func (g *guard) serverAddr() netip.Addr {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.server
}

// noAnswerError reports an address at which nothing answers now.
type noAnswerError struct{ error }

// noAnswer is plain, for a request that has got no answer.
func noAnswer(err error) error {
	of, ok := errors.AsType[*url.Error](err)
	if unreached.Why(err) != "" || ok && of.Timeout() {
		return &noAnswerError{plain(err)}
	}
	return plain(err)
}

// plain returns an error of net/http without the URL, which may have a secret, and in plain words where there are any.
func plain(err error) error {
	if why := unreached.Why(err); why != "" {
		return errors.New(why)
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		if of.Timeout() {
			return fmt.Errorf("no answer within %v", askTimeout)
		}
		return of.Err
	}
	return err
}
