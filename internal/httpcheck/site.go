package httpcheck

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/hosts"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// checkSite refuses requests that a web page made a browser send (MCP
// 2025-11-25, basic/transports, security warning): a Host that is no loopback
// name on a loopback address is DNS rebinding, and an Origin must be our own or
// allowed. A GET of an image names no origin, only its site (Fetch Metadata, W3C).
// http.CrossOriginProtection lets every GET pass. checkSite returns an empty reason when
// all is well.
func (f *Checker) checkSite(r *http.Request) (reason, message string) {
	if reason, message = f.checkHost(r); reason != "" {
		return reason, message
	}
	if origins := r.Header["Origin"]; len(origins) > 0 {
		if len(origins) > 1 || !f.originAllowed(origins[0], r) {
			return metrics.RejectedOrigin, "the Origin is not allowed: allow it by the allowed-origins option"
		}
		return "", ""
	}
	if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") &&
		!slices.Contains(f.opts.AllowedOrigins, "*") {
		return metrics.RejectedOrigin,
			"a page of another site made the browser send this: " +
				"open the address itself, or allow any origin by the allowed-origins option"
	}
	// A GET of a page of its own site has neither over plain HTTP, but most pages send a Referer.
	page, err := url.Parse(r.Referer())
	ofHost := err == nil && page.Host != "" && strings.EqualFold(page.Host, r.Host)
	if ofHost && !f.originAllowed(page.Scheme+"://"+page.Host, r) {
		return metrics.RejectedOrigin,
			"a page of that name may have made the browser send this: allow the name by the allowed-hosts option"
	}
	return "", ""
}

// checkHost is the part of checkSite that looks at Host.
func (f *Checker) checkHost(r *http.Request) (reason, message string) {
	switch {
	case f.isKnownHost(r.Host):
	case onLoopback(r):
		return metrics.RejectedHost, "the Host header is not a loopback name: allow it by the allowed-hosts option"
	case len(f.opts.AllowedHosts) > 0 && !isAddress(r.Host):
		return metrics.RejectedHost, "the Host header is not among those of the allowed-hosts option"
	}
	return "", ""
}

// originAllowed reports whether a page of an origin may send a request: it is allowed, or our
// own. A page of a foreign name is no page of ours, although its origin is that of Host: its
// owner has made the name resolve to this machine (DNS rebinding). That works neither with an
// address as the name, nor with TLS, and gains nothing where a token is needed. A browser tells
// the site of a page (Sec-Fetch-Site) to TLS and loopback alone, so it shows TLS at a proxy.
func (f *Checker) originAllowed(origin string, r *http.Request) bool {
	if contains(f.opts.AllowedOrigins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	isOurs := err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
	return isOurs && (f.isKnownHost(r.Host) || isAddress(r.Host) || r.TLS != nil ||
		r.Header.Get("Sec-Fetch-Site") == "same-origin" || f.opts.Authenticate != nil)
}

// isKnownHost reports whether a Host header is this machine's loopback name, the public one, or an allowed one.
func (f *Checker) isKnownHost(host string) bool {
	name := hostname(host)
	return IsLoopback(host) || f.opts.PublicHost != "" && strings.EqualFold(name, f.opts.PublicHost) ||
		contains(f.opts.AllowedHosts, name)
}

// isAddress reports whether a Host header is an IP address, which no name resolves to.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(hostname(host))
	return err == nil
}

// onLoopback reports whether a request came in on a loopback address.
func onLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && IsLoopback(local.String())
}

// IsLocal reports whether a request comes from this machine, and not by a proxy on
// it for somebody else. A proxy that adds no header, while the gateway is not told
// of any, cannot be noticed.
func (f *Checker) IsLocal(r *http.Request) bool {
	_, forwarded := IsForwarded(r)
	return !forwarded && peerOf(r).IsLoopback() && onLoopback(r) && len(f.opts.TrustedProxies) == 0 && !byProxy(r)
}

// peerOf returns the address that a request comes from; the zero Addr if that is none.
func peerOf(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap()
}

// byProxy reports whether a request has a header that proxies add.
func byProxy(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || slices.Contains(proxyHeaders, name) {
			return true
		}
	}
	return false
}

// proxyHeaders are what proxies add to a request beside X-Forwarded-….
var proxyHeaders = []string{
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Cf-Ray",
	"Fastly-Client-Ip", "X-Original-Forwarded-For",
}

// setCORS lets pages of AllowedOrigins read our answers.
func (f *Checker) setCORS(w http.ResponseWriter, r *http.Request, methods string) {
	if len(f.opts.AllowedOrigins) == 0 {
		return
	}
	header := w.Header()
	header.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" {
		return
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers",
		"Mcp-Session-Id, X-Connection-ID, X-Connection-State, WWW-Authenticate, Retry-After")
	if r.Method == http.MethodOptions {
		header.Set("Access-Control-Allow-Methods", methods)
		header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
		header.Set("Access-Control-Max-Age", "600")
	}
}

func contains(list []string, value string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return s == "*" || strings.EqualFold(s, value) })
}

// hostname is a Host header without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// IsLoopback is hosts.IsLoopback of a host with or without a port.
func IsLoopback(host string) bool { return hosts.IsLoopback(hostname(host)) }

// ClientAddr is the address of the client: the peer's, or what trusted proxies
// say. X-Forwarded-For is read from its end, as far as the hops are trusted. Another replica
// that forwards a request has done so.
func (f *Checker) ClientAddr(r *http.Request) netip.Addr {
	addr := peerOf(r)
	if _, forwarded := IsForwarded(r); forwarded || !f.trusted(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, err := netip.ParseAddr(hostname(strings.TrimSpace(hop)))
		if err != nil {
			return addr
		}
		addr = next.Unmap()
		if !f.trusted(addr) {
			return addr
		}
	}
	return addr
}

func (f *Checker) trusted(addr netip.Addr) bool {
	addr = addr.WithZone("") // a prefix contains no address with a zone
	return slices.ContainsFunc(f.opts.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// SetState tells a client that what it knows of the server is from memory: no session says it.
func SetState(header http.Header, c connstate.ForTransport) {
	if c.OnMemory() {
		header.Set("X-Connection-State", "resting")
	}
}
