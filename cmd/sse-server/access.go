package main

import (
	"log/slog"
	"net/http"
	"reflect"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/oauth"
)

// access is how clients authenticate: by tokens of a file, or of an OAuth issuer, or both.
type access struct {
	static    func(*http.Request) (string, error) // nil: there is no file
	resources map[string]*oauth.Resource          // by the name of the server; nil: no issuer
}

// ofOAuth begins the principals of the issuer, so that none is one of the file, which have no
// colon.
const ofOAuth = "oauth:"

func newAccess(c *config.Config, log *slog.Logger) (a access, err error) {
	if c.Tokens != nil {
		if a.static, err = front.BearerTokens(c.Tokens); err != nil {
			return a, err
		}
	}
	if c.OAuth.Issuer == "" {
		return a, nil
	}
	a.resources = make(map[string]*oauth.Resource)
	var first *oauth.Resource
	for _, s := range c.Each() {
		o := c.OAuthOptions(s)
		o.Logger = log
		if first == nil {
			first, err = oauth.New(o)
		}
		if err == nil {
			a.resources[s.Name], err = first.With(o.Scopes, o.Resource, o.Aliases...)
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// control sets how clients of a server authenticate.
func (a access) control(o *gateway.Options, server string) {
	o.Authenticate = a.static
	res := a.resources[server]
	if res == nil {
		return
	}
	known := func(r *http.Request) (principal string, ok bool) {
		if a.static == nil || len(r.Header["Authorization"]) != 1 {
			return "", false
		}
		principal, err := a.static(r)
		return principal, err == nil
	}
	o.Authenticate = func(r *http.Request) (string, error) {
		if principal, ok := known(r); ok {
			return principal, nil
		}
		principal, err := res.Authenticate(r)
		return ofOAuth + principal, err
	}
	o.Lease = func(r *http.Request) func() error {
		if _, ok := known(r); ok {
			return nil
		}
		return res.Lease(r)
	}
}

// operators returns how those who use the routes for operators authenticate: a token of an
// issuer makes nobody an operator. On the main address, which strangers reach then, the routes
// need a file of tokens.
func (a access) operators(c *config.Config) func(*http.Request) (string, error) {
	if a.static != nil || a.resources == nil || c.AdminAddr != "" {
		return a.static
	}
	return func(*http.Request) (string, error) {
		return "", &front.AuthError{Message: "operators need a token of auth-tokens-file, or admin-addr"}
	}
}

// metadata serves the metadata of the resources.
func (d *daemon) metadata(w http.ResponseWriter, r *http.Request) {
	for _, res := range d.access.Load().resources {
		if h := res.Metadata()[r.URL.EscapedPath()]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
	}
	d.guard.Load().NotFound(w, r, "no such resource")
}

// revoke closes the connections of principals that next does not know, and of clients of the
// issuer whose server has other options for it: a stream is authenticated when it opens.
func (d *daemon) revoke(was, next *config.Config) {
	known := map[string]bool{"": next.Tokens == nil && next.OAuth.Issuer == ""}
	for _, principal := range next.Tokens {
		known[principal] = true
	}
	before := make(map[string]oauth.Options)
	for _, s := range was.Each() {
		before[s.Name] = was.OAuthOptions(s)
	}
	for _, s := range next.Each() {
		same := next.OAuth.Issuer != "" && reflect.DeepEqual(before[s.Name], next.OAuthOptions(s))
		d.gateways[s.Name].Revoke(func(principal string) bool {
			return !known[principal] && !(same && strings.HasPrefix(principal, ofOAuth))
		})
	}
}
