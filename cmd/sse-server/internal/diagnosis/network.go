package diagnosis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

func (r *run) hasNoURL() bool { return r.at == nil }

func (r *run) noURL(context.Context) (string, error) {
	return "", &fault{"this is no URL", "write it as http://HOST:PORT/mcp"}
}

// proxyURL returns the proxy that the environment names for the URL; nil if there is none.
func (r *run) proxyURL() *url.URL {
	proxy, _ := http.ProxyFromEnvironment(&http.Request{URL: r.at})
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
		return "", &fault{fmt.Sprintf("there is no address of %s", host), "check the name of the host, and the DNS of this machine"}
	}
	return host + " is " + strings.Join(addrs, ", "), nil
}

// address returns host and port.
func (r *run) address() string {
	port := r.at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[r.at.Scheme]
	}
	return net.JoinHostPort(r.at.Hostname(), port)
}

func (r *run) connect(ctx context.Context) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.address())
	if err != nil {
		return "", unreachable(err)
	}
	defer conn.Close()
	return "connected to " + conn.RemoteAddr().String(), nil
}

func unreachable(err error) error {
	remedy := "see whether a firewall is between"
	if strings.Contains(err.Error(), "refused") {
		remedy = "start the server, or check the port; in a container it has to listen on 0.0.0.0"
	}
	return &fault{plain(err), remedy}
}

func (r *run) shakeHands(ctx context.Context) (string, error) {
	conn, err := (&tls.Dialer{Config: r.transport.TLSClientConfig}).DialContext(ctx, "tcp", r.address())
	if err != nil {
		return "", wrongTLS(err)
	}
	defer conn.Close()
	state := conn.(*tls.Conn).ConnectionState()
	return fmt.Sprintf("%s, the certificate is valid until %s", tls.VersionName(state.Version),
		state.PeerCertificates[0].NotAfter.Format(time.DateOnly)), nil
}

func wrongTLS(err error) error {
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		return &fault{"the server does not speak TLS there", "use http:// in the client, or set tls-cert"}
	case strings.Contains(err.Error(), "unknown authority"):
		return &fault{"the certificate is of an authority that this machine does not know", "have the client trust it: NODE_EXTRA_CA_CERTS for Node.js, SSL_CERT_FILE for others"}
	}
	return &fault{plain(err), "check the certificate: its names, its chain and its time"}
}

// plain returns the text of an error without words of libraries.
func plain(err error) string {
	return strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), "time is up")
}
