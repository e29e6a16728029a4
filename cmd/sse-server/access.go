package main

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/oauth"
)

// access is how clients authenticate: by tokens of a file, or of an OAuth issuer, or both.
type access struct {
	static    func(*http.Request) (string, error) // nil: there is no file
	operators func(*http.Request) (string, error) // for the routes for operators
	resources map[string]*oauth.Resource          // by the name of the server; nil: no issuer
	metadata  *http.ServeMux                      // of resources
}

// ofOAuth begins the principals of the issuer, so that none is one of the file, which have no
// colon.
const ofOAuth = "oauth:"

// newAccess returns the access of c. A token of an issuer makes nobody an operator: on the main
// address, which strangers reach then, the routes for operators need a file of tokens.
func newAccess(c *config.Config, log *slog.Logger) (a access, err error) {
	a.metadata = http.NewServeMux()
	if c.Tokens != nil {
		a.static, err = front.BearerTokens(c.Tokens)
	}
	a.operators = a.static
	if c.Resource.Issuer == "" || err != nil {
		return a, err
	}
	if a.static == nil && c.AdminAddr == "" {
		a.operators = func(*http.Request) (string, error) {
			return "", &front.AuthError{Message: "operators need a token of auth-tokens-file, or admin-addr"}
		}
	}
	a.resources = make(map[string]*oauth.Resource)
	var last *oauth.Resource
	for _, s := range c.Each() {
		o := c.OAuthOptions(s)
		o.Logger, o.Beside = log, last
		if last, err = oauth.New(o); err != nil {
			return a, err
		}
		a.resources[s.Name] = last
		for path, handler := range last.Metadata() {
			a.metadata.Handle(path, handler)
		}
	}
	return a, nil
}

// control sets how clients of a server authenticate.
func (a access) control(o *gateway.Options, server string) {
	res := a.resources[server]
	if o.Authenticate = a.static; res == nil {
		return
	}
	o.Reauthenticate = true
	o.Authenticate = func(r *http.Request) (string, error) {
		if a.static != nil {
			if principal, err := a.static(r); err == nil {
				return principal, nil
			}
		}
		principal, err := res.Authenticate(r)
		return ofOAuth + principal, err
	}
}

// revoke closes the connections of principals that next does not know. The gateways
// authenticate others of the issuer again.
func (d *daemon) revoke(next *config.Config) {
	byOAuth := next.Resource.Issuer != ""
	known := map[string]bool{"": next.Tokens == nil && !byOAuth}
	for _, principal := range next.Tokens {
		known[principal] = true
	}
	for _, gw := range d.gateways {
		gw.Revoke(func(principal string) bool {
			return !known[principal] && !(byOAuth && strings.HasPrefix(principal, ofOAuth))
		})
	}
}
