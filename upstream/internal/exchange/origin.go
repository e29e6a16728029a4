package exchange

import (
	"net/url"
	"strings"
)

// maxShown is the longest part of a path that PublicURL shows, in bytes.
const maxShown = 20

// PublicURL returns an address without what may be secret in it: user and password,
// the query, and long parts of the path, which hosted servers use as keys.
func PublicURL(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return "the server's URL"
	}
	parts := strings.Split(at.Path, "/")
	for i, part := range parts {
		if len(part) > maxShown {
			parts[i] = "..."
		}
	}
	return (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: strings.Join(parts, "/")}).String()
}

// Place returns the endpoint's PublicURL, for errors and logs.
func (e *Endpoint) Place() string { return PublicURL(e.URL) }

// SameOrigin reports whether two URLs have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Hostname() == b.Hostname() && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
