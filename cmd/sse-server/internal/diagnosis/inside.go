package diagnosis

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// errInside is why metadata are not read.
var errInside = errors.New("not asked: it is at an address of this machine or network, and the server is not")

// isInside reports whether an address is of this machine or network.
func isInside(at netip.Addr) bool {
	at = at.Unmap()
	return at.IsLoopback() || at.IsPrivate() || at.IsLinkLocalUnicast() || at.IsUnspecified() ||
		slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(at) })
}

// special are networks that no public server is in, beside those that netip has words for.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),      // this network (RFC 791)
	netip.MustParsePrefix("100.64.0.0/10"),  // a provider and its customers (RFC 6598); also VPNs, metadata of clouds
	netip.MustParsePrefix("192.0.0.0/24"),   // protocol assignments (RFC 6890); also metadata of clouds
	netip.MustParsePrefix("198.18.0.0/15"),  // measurements of networks (RFC 2544)
	netip.MustParsePrefix("64:ff9b::/96"),   // an IPv4 address behind NAT64 (RFC 6052), which may be any of these
	netip.MustParsePrefix("64:ff9b:1::/48"), // the same within a network (RFC 8215)
	netip.MustParsePrefix("2002::/16"),      // an IPv4 address in 6to4 (RFC 3056)
}

// namesInside reports whether a URL says that it is at such an address, without asking DNS.
func namesInside(at *url.URL) bool {
	name := strings.ToLower(strings.TrimSuffix(at.Hostname(), "."))
	addr, err := netip.ParseAddr(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && isInside(addr)
}

// outside returns a client for a URL that connects to no such address, whatever DNS and redirects say. The
// proxy of the environment may be at one; then DNS is its own, and the URLs alone are looked at.
func (r *run) outside(at *url.URL) *http.Client {
	transport, proxy := r.transport.Clone(), proxyOf(at)
	transport.Proxy = http.ProxyURL(proxy) // nil: none
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); err != nil || isInside(at.Addr()) {
			return errInside
		}
		return nil
	}}
	if proxy == nil {
		transport.DialContext = dialer.DialContext
	}
	return &http.Client{Transport: transport, CheckRedirect: func(request *http.Request, via []*http.Request) error {
		switch {
		case namesInside(request.URL):
			return errInside
		case len(via) == 10:
			return errors.New("too many redirects")
		}
		return nil
	}}
}
