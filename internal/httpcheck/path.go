package httpcheck

import (
	"net/http"
	"net/url"
	"strings"
)

// OuterPrefix is the part of the path that did not reach us: what a trusted
// proxy says it removed, and what http.StripPrefix removed.
func (f *Checker) OuterPrefix(r *http.Request) string {
	var forwarded string
	if f.trusted(peerOf(r)) {
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
	decoded, err := url.PathUnescape(p) // browsers take %2e for a dot
	dots := strings.Contains(decoded+"/", "/./") || strings.Contains(decoded+"/", "/../")
	return err == nil && !dots && strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "//") && len(p) <= 1024 &&
		strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~%!$&'()*+,;=:@") == ""
}
