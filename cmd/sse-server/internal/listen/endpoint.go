package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/throttle"
)

const (
	readTimeout    = 10 * time.Second
	writeTimeout   = 10 * time.Second
	maxHeaderBytes = 32 << 10
	// maxStreams bounds the requests at a time on one HTTP/2 connection.
	maxStreams = 100
)

// Options are those of an endpoint.
type Options struct {
	Option      string // the name of the address in the configuration
	Addr        string
	Handler     http.Handler
	IdleTimeout time.Duration // of a connection between two requests
	// Certificate returns the certificate of each TLS handshake. nil: the endpoint speaks plain HTTP.
	Certificate func() *tls.Certificate
	// Full is told once when the connections reach their limit, and again after there was room.
	Full     func()
	Logger   *slog.Logger
	ErrorLog *log.Logger // of the server
	// Listen takes the address. nil: it is a TCP address.
	Listen func(ctx context.Context) (net.Listener, error)
}

// Endpoint is one address that is served. Make it with New.
type Endpoint struct {
	Option string // the name of the address
	Server *http.Server
	tls    bool
	conns  *conns
	listen func(ctx context.Context) (net.Listener, error) // nil: takes a TCP address
}

// New prepares an endpoint, which takes no address yet. Its timeouts are for requests that end: the
// gateway lifts them for a stream, and bounds each write of it.
func New(o Options) *Endpoint {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	e := &Endpoint{
		Option: o.Option, tls: o.Certificate != nil, conns: newConns(), listen: o.Listen,
		Server: &http.Server{
			Addr:           o.Addr,
			Handler:        o.Handler,
			Protocols:      protocols,
			ReadTimeout:    readTimeout,
			WriteTimeout:   readTimeout + writeTimeout, // it begins before the body is read
			IdleTimeout:    o.IdleTimeout,
			MaxHeaderBytes: maxHeaderBytes,
			HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: maxStreams, WriteByteTimeout: writeTimeout},
			ErrorLog:       o.ErrorLog,
		},
	}
	e.conns.watch(e.Server)
	e.conns.full = o.Full
	if limited := throttle.NewLines().Logger(o.Logger); !e.tls {
		e.conns.tls = func() {
			limited.Warn("TLS to an address with plain HTTP", "remedy", "use http:// in the client, or set tls-cert",
				"option", o.Option)
		}
	} else {
		e.Server.TLSConfig = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return o.Certificate(), nil
		}}
	}
	return e
}

// SetLimit bounds the TCP connections; 0 means that there is no limit. A lower one closes none.
func (e *Endpoint) SetLimit(n int) { e.conns.update(func() { e.conns.limit = n }) }

// Listen takes the address, unless a socket has replaced it. The error says what to do.
func (e *Endpoint) Listen(ctx context.Context) (err error) {
	switch {
	case e.conns.Listener != nil:
	case e.listen != nil:
		e.conns.Listener, err = e.listen(ctx)
	default:
		e.conns.Listener, err = listenTCP(ctx, e.Server.Addr)
		if err != nil {
			err = errors.New(whyNoListener(e.Server.Addr, err))
		}
	}
	return err
}

// Listener returns what listens at the address; nil before Listen.
func (e *Endpoint) Listener() net.Listener { return e.conns.Listener }

// Serve serves until Stop, or until the server is shut down.
func (e *Endpoint) Serve() error {
	defer close(e.conns.served)
	if e.tls {
		return e.Server.ServeTLS(e.conns, "", "") // GetCertificate has them
	}
	return e.Server.Serve(e.conns)
}

// Stop accepts no more connections, and waits a little for the first requests of those that are there.
func (e *Endpoint) Stop(ctx context.Context) { e.conns.stop(ctx) }

// Close ends all connections at once.
func (e *Endpoint) Close() error {
	_ = e.conns.Close() // the server does not know it before Serve
	return e.Server.Close()
}

// whyNoListener says why an address cannot be served, and what to do.
func whyNoListener(addr string, err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Sprintf("another program serves %s: stop it, or choose another port", addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Sprintf("this user may not serve %s: ports below 1024 need root or CAP_NET_BIND_SERVICE; "+
			"choose a higher one, such as 8080", addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Sprintf("this machine does not have the address %s: choose one that it has, or 0.0.0.0 for all",
			addr)
	}
	if wrong, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("no address is known for %s: choose an address of this machine", wrong.Name)
	}
	return fmt.Sprintf("%v: choose another address", err)
}

// Addr returns the address that is served.
func (e *Endpoint) Addr() net.Addr { return e.conns.Addr() }

// URL returns the address with a host that a client on this machine can use.
func (e *Endpoint) URL() string {
	scheme, at := "http://", e.Addr().String()
	if e.Addr().Network() == "unix" {
		return "unix:" + at + ":"
	}
	if e.tls {
		scheme = "https://"
	}
	if tcp, ok := e.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		at = fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return scheme + at
}

// Elsewhere returns the address with which other machines reach all addresses of this one; empty if the
// address is another, or there is none.
func (e *Endpoint) Elsewhere() string {
	at, ok := e.Addr().(*net.TCPAddr)
	addrs, err := net.InterfaceAddrs()
	if !ok || !at.IP.IsUnspecified() || err != nil {
		return ""
	}
	var host string
	for _, addr := range addrs {
		one, ok := addr.(*net.IPNet)
		if !ok || !one.IP.IsGlobalUnicast() {
			continue
		}
		if host == "" || one.IP.To4() != nil && net.ParseIP(host).To4() == nil {
			host = one.IP.String()
		}
	}
	if host == "" {
		return ""
	}
	scheme := "http://"
	if e.tls {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, fmt.Sprint(at.Port))
}
