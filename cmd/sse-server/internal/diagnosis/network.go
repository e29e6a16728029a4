package diagnosis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/hosts"
	"github.com/mcp-sse/mcp-sse/internal/unreached"
)

func (r *run) hasNoURL() bool { return r.at == nil }

func (r *run) noURL(context.Context) (string, error) {
	return "", &fault{"this is not a URL", "write it as http://HOST:PORT/mcp"}
}

// proxyURL returns the proxy that the environment names for the URL; nil if there is none.
func (r *run) proxyURL() *url.URL { return proxyOf(r.at) }

func proxyOf(at *url.URL) *url.URL {
	proxy, _ := http.ProxyFromEnvironment(&http.Request{URL: at})
	return proxy
}

func (r *run) isProxied() bool { return r.proxyURL() != nil }
func (r *run) isDirect() bool  { return !r.isProxied() }
func (r *run) isSecure() bool  { return r.isDirect() && r.at.Scheme == "https" }

// hasName reports whether DNS is to be asked.
func (r *run) hasName() bool {
	_, err := netip.ParseAddr(r.at.Hostname())
	return r.isDirect() && err != nil
}

func (r *run) proxy(context.Context) (string, error) {
	return "the environment has the requests go through " + r.proxyURL().Host, nil
}

func (r *run) lookUp(ctx context.Context) (string, error) {
	host := r.at.Hostname()
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		what := cmp.Or(unreached.At(host, err), "the address of "+host+" cannot be looked up: "+causeOf(err))
		return "", &fault{what, "check the name of the host, and the DNS of this machine"}
	}
	return host + " is " + strings.Join(addrs, ", "), nil
}

// address returns host and port.
func (r *run) address() string { return addressOf(r.at) }

func addressOf(at *url.URL) string { return strings.ToLower(hosts.Address(at)) }

func (r *run) connect(ctx context.Context) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.address())
	if err != nil {
		return "", r.unreachable(ctx, err)
	}
	defer conn.Close()
	if at, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		r.isInside = hosts.IsInside(at.Addr())
	}
	return "connected to " + conn.RemoteAddr().String(), nil
}

func (r *run) unreachable(ctx context.Context, err error) error {
	what := cmp.Or(unreached.At(r.address(), err), "no way to "+r.address()+": "+causeOf(err))
	switch {
	case ctx.Err() != nil:
		what = fmt.Sprintf("%s did not answer in %v", r.address(), r.Patience)
	case errors.Is(err, syscall.ECONNREFUSED):
		return &fault{what, "start the server, or check the port; in a container it has to listen on 0.0.0.0"}
	}
	return &fault{what, "check the address; see whether a firewall is between"}
}

func (r *run) shakeHands(ctx context.Context) (string, error) {
	most, cancel := r.most(ctx)
	defer cancel()
	conn, err := (&tls.Dialer{Config: r.transport.TLSClientConfig}).DialContext(most, "tcp", r.address())
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case err == nil:
	case errors.As(err, &record), !errors.As(err, &certificate) && r.speaksHTTP(ctx):
		return "", noTLS
	default:
		return "", wrongTLS(err)
	}
	defer conn.Close()
	state := conn.(*tls.Conn).ConnectionState()
	return fmt.Sprintf("%s, the certificate is valid until %s", tls.VersionName(state.Version),
		state.PeerCertificates[0].NotAfter.Format(time.DateOnly)), nil
}

// noTLS is the fault of a URL with https of a port without TLS.
var noTLS = &fault{"the server does not speak TLS there, but plain HTTP",
	"use http:// in the client, or have the server speak TLS: tls-cert"}

// needsTLS is that of a URL with http of a port with TLS.
var needsTLS = &fault{"the server speaks TLS there, and no plain HTTP", "use https:// in the client"}

func wrongTLS(err error) error {
	switch {
	case strings.Contains(err.Error(), "unknown authority"):
		return &fault{"the certificate is of an authority that this machine does not know",
			"have the client trust it: NODE_EXTRA_CA_CERTS for Node.js, SSL_CERT_FILE for others"}
	case closedByPeer(err):
		return &fault{"the connection is closed during the TLS handshake",
			"check the port, and see the log of what listens there"}
	case errors.Is(err, context.DeadlineExceeded):
		return &fault{"the server does not answer in the TLS handshake",
			"check the port, and see the log of what listens there"}
	}
	return &fault{causeOf(err), "check the certificate: its names, its chain and its time"}
}

// closedByPeer reports whether the other end has closed a connection without a word.
func closedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "server closed idle connection") // of net/http, which does not export it
}

// most returns a context that leaves some of the step's time to find out why it was not enough.
func (r *run) most(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.Patience*2/3)
}

// speaksHTTP reports whether the port of the URL answers plain HTTP.
func (r *run) speaksHTTP(ctx context.Context) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.address())
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	const answer = "HTTP/"
	got := make([]byte, len(answer))
	fmt.Fprintf(conn, "HEAD / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", r.at.Host)
	_, err = io.ReadFull(conn, got)
	return err == nil && string(got) == answer
}

// speaksTLS reports whether the port of the URL answers a TLS handshake. Nothing is sent there.
func (r *run) speaksTLS(ctx context.Context) bool {
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true,
		ServerName: r.at.Hostname()}}).DialContext(ctx, "tcp", r.address())
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// causeOf returns the text of the innermost error, without words of libraries.
func causeOf(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return inPlainWords.Replace(err.Error())
}

var inPlainWords = strings.NewReplacer(context.DeadlineExceeded.Error(), "time is up", "i/o timeout", "time is up",
	"x509: ", "", "tls: ", "", "net/http: ", "", "http: ", "")
