package front

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/mcp-sse/mcp-sse/metrics"
)

// OuterPrefix is the part of the path that did not reach us: what a trusted
// proxy says it removed, and what http.StripPrefix removed.
func (f *Front) OuterPrefix(r *http.Request) string {
	var forwarded string
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && f.trusted(peer.Addr().Unmap()) {
		forwarded = strings.TrimRight(r.Header.Get("X-Forwarded-Prefix"), "/")
		if forwarded != "" && !SafePath(forwarded) {
			f.limited.Warn("header ignored: not a path", "header", "X-Forwarded-Prefix")
			forwarded = ""
		}
	}
	requested, _, _ := strings.Cut(r.RequestURI, "?")
	if _, rest, ok := strings.Cut(requested, "://"); ok { // the whole URL: what clients send to a proxy
		_, rest, _ = strings.Cut(rest, "/")
		requested = "/" + rest
	}
	stripped, ok := strings.CutSuffix(requested, r.URL.EscapedPath())
	if !ok || stripped != "" && !SafePath(stripped) {
		stripped = ""
	}
	return forwarded + strings.TrimRight(stripped, "/")
}

// SafePath reports whether clients may be told the path p: an absolute path
// that no client can take for another host, of characters that need no escape.
func SafePath(p string) bool {
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || len(p) > 1024 {
		return false
	}
	decoded, err := url.PathUnescape(p) // browsers take %2e for a dot
	if err != nil {
		return false
	}
	for _, segment := range strings.Split(decoded, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~%!$&'()*+,;=:@") == ""
}

// NotFound answers a request for a path that is no route.
func (f *Front) NotFound(w http.ResponseWriter, r *http.Request) {
	prefix := f.OuterPrefix(r) + f.opts.Prefix
	routes := make([]string, len(f.opts.Served))
	for i, path := range f.opts.Served {
		routes[i] = told(prefix + path)
	}
	message := "no such route: this gateway serves " + strings.Join(routes, ", and ") + f.prefixHint(r.URL.Path)
	f.Refuse(w, r, http.StatusNotFound, metrics.RejectedNotFound, message)
}

// told is how the answer to an unknown path names the routes of a transport.
func told(path string) string {
	if strings.HasSuffix(path, "/sse") {
		return "GET " + path + " and POST " + path + "/{id}/message"
	}
	return "POST, GET and DELETE " + path
}

// prefixHint says what to do about a path that is a route under another prefix;
// "" for other paths.
func (f *Front) prefixHint(path string) string {
	prefix, ok := f.otherPrefix(path)
	switch {
	case !ok || prefix == f.opts.Prefix || len(prefix) > maxLoggedPath || CheckPrefix(prefix) != nil:
		return ""
	case prefix == "":
		return "; the option prefix is " + f.opts.Prefix + ", and this path comes without it: does a proxy strip it?"
	}
	return "; if clients use this path through a proxy, set the option prefix to " + prefix
}

// otherPrefix returns the prefix under which a path would be a route.
func (f *Front) otherPrefix(path string) (prefix string, ok bool) {
	for _, served := range f.opts.Served {
		if prefix, ok = strings.CutSuffix(path, served); ok {
			return prefix, true
		}
		if at := strings.LastIndex(path, served+"/"); at >= 0 {
			if _, ok = MessageID(path[:at]+served+"/", path); ok {
				return path[:at], true
			}
		}
	}
	return "", false
}

// MessageID returns the id of the connection in the path of a message for it, which
// begins with prefix.
func MessageID(prefix, path string) (id string, ok bool) {
	rest, inside := strings.CutPrefix(path, prefix)
	id, message := strings.CutSuffix(rest, "/message")
	return id, inside && message && id != "" && !strings.Contains(id, "/")
}
