package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/hosts"
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
	case c.AuthTokensFile == "" && len(c.OAuth) == 0:
		wrong = "without authentication there are no principals: want auth-tokens-file or oauth too"
	case len(c.OAuth) > 0 && c.pageClient == "":
		wrong = "the page of a login has people show at the issuer of oauth who they are: want page-client-id in " +
			"oauth too, a public client that may redirect to " + c.publicBase() + c.loginPath(s) + "/principal"
	case err == nil && public.Scheme == "http":
		wrong = "public-url has http: browsers must come by https, as with https://gw.example.com"
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
		wrong = "a session started before its client comes has no login: leave warm out"
	case slices.ContainsFunc(c.Endpoints(), func(other *Server) bool { return other.Name == loginKey }):
		wrong = "the pages of logins are at /login, which is the path of a server: want another name for that"
	}
	if wrong != "" {
		return c.refuseFor(s, loginKey, "per-principal: %s", wrong)
	}
	for _, place := range c.unnamed {
		c.warn("%s: no name: write alice:TOKEN, so that the page of a login can say whose it is", place)
	}
	s.remote.Credentials = login.Credentials{StateDir: c.StateDir, Server: s.remote.Address,
		Header: login.HeaderText(s.remote.Header),
		Own:    login.Own{Page: c.publicBase() + c.loginPath(s), Authority: c.authority()},
		Seal:   login.Seal{Key: login.SealingKey(c.IDKey), Gateway: c.gatewayName()},
		Client: s.loginClient, ClientIssuer: s.loginIssuer}
	return nil
}

// authority says who names the principals of the issuer: the same claim of another issuer is another principal. It is
// empty without an issuer.
func (c *Config) authority() string {
	of := c.Each()[0].protection
	if of.Issuer == "" {
		return ""
	}
	return cmp.Or(of.PrincipalClaim, "sub") + " of " + of.Issuer
}

// gatewayName tells the gateway from others of this user: its file does. It is empty without one, and for what is no
// file of a path of its own, such as /dev/stdin.
func (c *Config) gatewayName() string {
	path, err := filepath.Abs(c.Config)
	if info, problem := os.Stat(c.Config); err != nil || problem != nil || !info.Mode().IsRegular() ||
		strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/") {
		return ""
	}
	return path
}

// readLoginClient reads the client that the operator has registered at the issuer of the remote server.
func (s *Server) readLoginClient(c *Config, lookupEnv func(string) (string, bool)) error {
	if len(s.LoginClient) == 0 {
		return nil
	}
	client := login.Client{ByHand: true}
	if err := c.readPairs(s, loginClientKey, s.LoginClient, lookupEnv, map[string]*string{
		"client-id": &client.ID, "client-secret": &client.Secret, "issuer": &s.loginIssuer,
	}); err != nil {
		return err
	}
	at, err := url.Parse(s.loginIssuer)
	switch {
	case s.LoginUse != perPrincipal:
		return c.refuseFor(s, loginClientKey, "has no effect without login: per-principal: "+
			"else name the client when you log in, with sse-server login --client-id ID --issuer URL")
	case s.owner != ours:
		return c.refuseFor(s, loginClientKey, "the file of a client cannot have it: write the server into a file of "+
			"your own")
	case client.ID == "" || s.loginIssuer == "":
		return c.refuseFor(s, loginClientKey, "want client-id and issuer: a client id is sent only to an issuer that "+
			"you name")
	case err != nil || !hosts.IsSecure(at) || at.User != nil:
		return c.refuseFor(s, loginClientKey, "issuer: want a URL such as https://login.example.com")
	}
	s.loginClient = client
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
		page = &login.Page{Credentials: own, Name: c.Title(s),
			Principal: func(token string) (string, error) {
				header := http.Header{"Authorization": {"Bearer " + token}}
				return s.Authenticate(&http.Request{Header: header, URL: new(url.URL)})
			}}
		if of := s.protection; of.Issuer != "" && c.pageClient != "" {
			page.TokenIssuer = &login.TokenIssuer{URL: of.Issuer, ClientID: c.pageClient, Resource: of.Resource,
				Scopes: of.Scopes}
		}
		return page, sub
	}
	return nil, ""
}

// MayLogIn reports whether the principal of a login is known, and may use the server of its page; where no server has
// that page, whether it is known.
func (c *Config) MayLogIn(of login.Own) bool {
	for _, s := range c.Each() {
		own, ok := s.remote.Credentials.(login.Credentials)
		if ok && own.Own.Page == of.Page && !s.MayUse(of.Principal) {
			return false
		}
	}
	if login.IsOfIssuer(of.Principal) {
		return of.Authority != "" && of.Authority == c.authority()
	}
	return slices.Contains(slices.Collect(maps.Values(c.Tokens)), of.Principal)
}

// keptUnused is how long the gateway keeps an unused login of a principal of the issuer: the issuer does not tell the
// gateway when it removes a user.
const keptUnused = 30 * 24 * time.Hour

// ForgetPrincipals deletes the logins of principals that are no more, or may not use the server any more, also those
// that were made under another public-url: it may come back. It deletes those of the issuer's principals that nobody
// has used for 30 days. It returns which. The logins of other gateways of this user stay.
func (c *Config) ForgetPrincipals() (gone []login.Gone, err error) {
	pages, gateway := c.publicBase()+c.Prefix+"/"+loginKey, c.gatewayName()
	return login.ForgetPrincipals(c.StateDir, login.SealingKey(c.IDKey), func(of login.OfPrincipal) bool {
		isOurs := of.Gateway != "" && of.Gateway == gateway || of.Page == pages || strings.HasPrefix(of.Page, pages+"/")
		used := of.At
		if of.LastUse.After(used) {
			used = of.LastUse
		}
		isUnused := login.IsOfIssuer(of.Principal) && time.Since(used) > keptUnused
		return !isOurs || !isUnused && c.MayLogIn(of.Own)
	})
}
