package daemon

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

// guard refuses requests that do not come from a local program. A web page in a
// browser of this machine can reach the port too: by a name that it resolves to
// 127.0.0.1, which the Host shows, or across sites, which Origin or Sec-Fetch-Site shows.
func guard(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.Host) {
			fail(w, http.StatusForbidden, api.CodeForbidden,
				"the Host header must name this machine: 127.0.0.1, [::1] or localhost")
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); r.Header.Get("Origin") != "" || site != "" && site != "none" {
			fail(w, http.StatusForbidden, api.CodeForbidden, "requests of web pages are refused")
			return
		}
		if token != "" && r.URL.Path != "/health" {
			scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			got := sha256.Sum256([]byte(sent))
			if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
				w.Header().Set("WWW-Authenticate", "Bearer")
				fail(w, http.StatusUnauthorized, api.CodeUnauthorized,
					"the daemon needs a token: set DOCSEARCH_TOKEN to the one that it was started with")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// isLocal reports whether a Host header names this machine.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
