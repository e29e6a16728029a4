package diagnosis

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"

	"github.com/mcp-sse/mcp-sse/internal/hosts"
)

// errInside is why metadata are not read.
var errInside = errors.New("not asked: it is at an address of this machine or network, and the server is not")

// outside returns a client for a URL that connects to no such address, whatever DNS and redirects say. The
// proxy of the environment may be at one; then DNS is its own, and the URLs alone are looked at.
func (r *run) outside(at *url.URL) *http.Client {
	transport, proxy := r.transport.Clone(), proxyOf(at)
	transport.Proxy = http.ProxyURL(proxy) // nil: none
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); err != nil || hosts.IsInside(at.Addr()) {
			return errInside
		}
		return nil
	}}
	if proxy == nil {
		transport.DialContext = dialer.DialContext
	}
	return &http.Client{Transport: transport, CheckRedirect: func(request *http.Request, via []*http.Request) error {
		switch {
		case hosts.NamesInside(request.URL):
			return errInside
		case len(via) == 10:
			return errors.New("too many redirects")
		}
		return nil
	}}
}
