package config

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/login"
)

// perPrincipal is the value of the option by which each principal has a login of its own.
const perPrincipal = "per-principal"

// useOwnLogins has the requests of each principal carry the login of that principal.
func (s *Server) useOwnLogins(c *Config) error {
	public, err := url.Parse(c.PublicURL)
	isPublic := err == nil && public.Scheme == "https" && public.Host != "" && public.User == nil &&
		public.RawQuery == "" && public.Fragment == ""
	wrong := ""
	switch {
	case c.Does == "stdio" || c.Shared != "":
		wrong = "stdio has one client, which has no principal: want shared or off there"
	case len(c.OAuth) > 0:
		wrong = "is not there yet with oauth, as the page of a login asks for a token of auth-tokens-file: " +
			"want grant: token-exchange in oauth-client, or no oauth"
	case c.AuthTokensFile == "":
		wrong = "without authentication there are no principals: want auth-tokens-file too"
	case !isPublic:
		wrong = "want public-url too, with https: the address at which browsers reach this gateway, such as " +
			"https://gw.example.com"
	case c.NATS != "":
		wrong = "is not there yet with nats: replicas do not share what they keep; want one process without nats"
	case c.StateDir == "":
		wrong = "there is no place to keep logins: want STATE_DIRECTORY or HOME"
	case c.NoIDKey != nil:
		wrong = fmt.Sprintf("the key that seals the logins is not kept: %v: want id-key-file", c.NoIDKey)
	case s.Sessions == "shared":
		wrong = "clients with a login each cannot share a session: want sessions: per-connection"
	case s.Warm != nil && *s.Warm > 0:
		wrong = "a session before its client has no login: want no warm"
	case slices.ContainsFunc(c.Endpoints(), func(other *Server) bool { return other.Name == loginKey }):
		wrong = "the pages of logins are at /login, which is the path of a server: want another name for that"
	}
	if wrong != "" {
		return s.refuse(loginKey, "per-principal: %s", wrong)
	}
	s.remote.Credentials = login.Credentials{StateDir: c.StateDir, Server: s.remote.Address,
		Header: login.HeaderText(s.remote.Header),
		Own:    login.Own{Page: c.publicBase() + c.loginPath(s), Key: login.SealingKey(c.IDKey)}}
	return nil
}

// publicBase returns public-url without a slash at its end.
func (c *Config) publicBase() string { return strings.TrimSuffix(c.PublicURL, "/") }

// loginPath returns the path of the page at which principals log in at a server.
func (c *Config) loginPath(s *Server) string {
	path := c.Prefix + "/" + loginKey
	if s.Name != "" {
		path += "/" + s.Name
	}
	return path
}

// LoginPage returns the page at which principals log in that a path leads to, and what follows its path; nil if it
// leads to none. The caller sets MayUse and Log.
func (c *Config) LoginPage(path string) (page *login.Page, sub string) {
	for _, s := range c.Each() {
		own, ok := s.remote.Credentials.(login.Credentials)
		if !ok || !own.IsPerPrincipal() {
			continue
		}
		sub, below := strings.CutPrefix(path, c.loginPath(s))
		if !below || !login.IsBelow(sub) {
			continue
		}
		return &login.Page{Credentials: own, Name: c.Title(s), Principal: func(token string) (string, error) {
			return s.Authenticate(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}})
		}}, sub
	}
	return nil, ""
}

// MayLogIn reports whether a principal is known, and may use the server of a page; where no server has that page,
// whether it is known.
func (c *Config) MayLogIn(page, principal string) bool {
	for _, s := range c.Each() {
		own, ok := s.remote.Credentials.(login.Credentials)
		if ok && own.Own.Page == page && !s.MayUse(principal) {
			return false
		}
	}
	return slices.Contains(slices.Collect(maps.Values(c.Tokens)), principal)
}

// ForgetPrincipals deletes the logins of principals that are no more, or may not use the server any more, also those
// that were made under another public-url: it may come back. It returns which. Without tokens it knows no principal,
// and looks at its own pages alone: other gateways of this user may have principals.
func (c *Config) ForgetPrincipals() (gone []login.Gone, err error) {
	return login.ForgetPrincipals(c.StateDir, login.SealingKey(c.IDKey), func(page, principal string) bool {
		pages := c.publicBase() + c.Prefix + "/" + loginKey
		if len(c.Tokens) == 0 && page != pages && !strings.HasPrefix(page, pages+"/") {
			return true
		}
		return c.MayLogIn(page, principal)
	})
}
