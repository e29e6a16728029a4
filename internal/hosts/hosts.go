// Package hosts says where a URL leads.
package hosts

import (
	"net"
	"net/netip"
	"net/url"
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
