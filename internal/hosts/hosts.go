// Package hosts says where a URL leads.
package hosts

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// IsLoopback reports whether a host, without a port, is this machine. A name other than localhost is not: what
// it resolves to may change.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// Address returns the host of a URL as it is written there, and the port.
func Address(u *url.URL) string { return net.JoinHostPort(u.Hostname(), Port(u)) }

// Port returns the port of a URL, by default that of its scheme; empty for a scheme other than those of HTTP.
func Port(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	case u.Scheme == "http":
		return "80"
	}
	return ""
}

// Origin returns the origin of a URL, as browsers write it: in small letters, and without the port of its scheme. It is
// empty for what has none.
func Origin(at string) string {
	u, err := url.Parse(at)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	host := strings.ToLower(u.Host)
	host = strings.TrimSuffix(host, map[string]string{"https": ":443", "http": ":80"}[u.Scheme])
	return u.Scheme + "://" + host
}

// IsSecure reports whether nobody on the way to a URL can read or change what is sent: it has https, or http on this
// machine.
func IsSecure(u *url.URL) bool {
	return u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && IsLoopback(u.Hostname()))
}

// IsInside reports whether an address is of this machine or network, or of another one that no public server is in.
func IsInside(at netip.Addr) bool {
	at = at.Unmap()
	return at.IsLoopback() || at.IsPrivate() || at.IsLinkLocalUnicast() || at.IsUnspecified() || at.IsMulticast() ||
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

// NamesInside reports whether a URL says that it is at such an address, without asking DNS.
func NamesInside(at *url.URL) bool {
	name := strings.ToLower(strings.TrimSuffix(at.Hostname(), "."))
	addr, err := netip.ParseAddr(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && IsInside(addr)
}
