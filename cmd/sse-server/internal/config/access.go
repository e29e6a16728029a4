package config

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/internal/selection"
)

// The keys of the file that say who may use a server or a view, and who the operators are.
const (
	principalsKey = "principals"
	operatorsKey  = "operators"
)

// authenticate is a function as gateway.Options.Authenticate.
type authenticate = func(*http.Request) (principal string, err error)

// MayUse reports whether a principal may use the server or view, as far as principals says.
func (s *Server) MayUse(principal string) bool { return s.mayUse.Has(principal) }

// isRestricted reports whether the file says which principals may use the server or view.
func (s *Server) isRestricted() bool { return s.Principals != nil }

// restrict lets in those principals alone that the file names: at each server and view, and at the routes for
// operators, which nobody gets any more by a token alone.
func (c *Config) restrict() error {
	isKnown := c.AuthTokensFile != "" || len(c.OAuth) > 0
	first := "" // where principals are given first
	for _, s := range c.Endpoints() {
		if !s.isRestricted() {
			continue
		}
		place := cmp.Or(s.given[principalsKey], c.Place(principalsKey))
		if !isKnown {
			return fmt.Errorf("%s: without authentication nobody has a name: want auth-tokens-file or oauth too", place)
		}
		names, err := selection.CompileNames(s.Principals)
		if err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		first = cmp.Or(first, place)
		c.warnOfNobody(place, s.Principals)
		s.mayUse = names
		s.Authenticate = only(s.Authenticate, names, "%q may not use this server: its principals are others")
	}
	return c.restrictOperators(first)
}

// restrictOperators lets in the operators alone at their routes, if the file names some, or restricts a server: place
// says where, and is empty if it does not.
func (c *Config) restrictOperators(place string) error {
	if c.OperatorNames == nil && place == "" {
		return nil
	}
	if c.OperatorNames != nil && c.AuthTokensFile == "" {
		return c.refuse(operatorsKey, "want auth-tokens-file too: the routes for operators take its tokens alone")
	}
	names, err := selection.CompileNames(c.OperatorNames)
	if err != nil {
		return c.refuse(operatorsKey, "%v", err)
	}
	c.warnOfNobody(c.Place(operatorsKey), c.OperatorNames)
	if c.OperatorNames == nil && c.AdminAddr != "" {
		c.warn("%s: nobody gets /status, /connections and /-/reload: name principals of auth-tokens-file who may, "+
			"such as operators: [alice]", place)
	}
	c.Operators = only(c.Operators, names, "%q is no operator: the configuration names them in operators")
	return nil
}

// only returns a function that lets a principal in if before does and names has it; nobody if before is nil. refusal
// has a %q for the principal, who gets that text.
func only(before authenticate, names *selection.Names, refusal string) authenticate {
	return func(r *http.Request) (principal string, err error) {
		if before != nil {
			principal, err = before(r)
		}
		if err != nil || before != nil && names.Has(principal) {
			return principal, err
		}
		return "", &auth.Error{Status: http.StatusForbidden, Message: fmt.Sprintf(refusal, principal)}
	}
}

// warnOfNobody warns of globs that no principal has who may come: usually a typing error.
func (c *Config) warnOfNobody(place string, globs []string) {
	for _, glob := range globs {
		names, err := selection.CompileNames([]string{glob})
		isThere := err != nil || len(c.OAuth) > 0 && mayBeOfIssuer(glob)
		for _, principal := range c.Tokens {
			isThere = isThere || names.Has(principal)
		}
		if !isThere {
			c.warn("%s: no principal is called %q", place, glob)
		}
	}
}

// mayBeOfIssuer reports whether a glob may match a principal of the issuer.
func mayBeOfIssuer(glob string) bool {
	head := glob
	if special := strings.IndexAny(glob, "*?"); special >= 0 {
		head = glob[:special]
	}
	return login.IsOfIssuer(head) || head != glob && strings.HasPrefix(login.OfIssuer, head)
}

// allow returns a function that reports whether a client of the view may use a server of it; nil if each may. ctx has
// the client, and else is of sse-server itself. The function does not wait.
func (v *View) allow(server *Server) func(ctx context.Context) bool {
	scopes := v.scopesOf(server)
	if server.mayUse == nil && len(scopes) == 0 {
		return nil
	}
	return func(ctx context.Context) bool {
		client := asker.FromContext(ctx)
		return client == nil || server.MayUse(client.Principal) && v.hasScopes(client, scopes)
	}
}

// scopesOf returns the scopes that a token for the view need not have, and a client of the server must.
func (v *View) scopesOf(server *Server) (scopes []string) {
	for _, scope := range server.Scopes {
		if !slices.Contains(v.Scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// scopesOfMembers returns the scopes that servers of a view want of its clients beside those of the view; none if s is
// no view.
func (c *Config) scopesOfMembers(s *Server) (scopes []string) {
	for _, v := range c.Views {
		if v.Server != s {
			continue
		}
		for _, m := range v.Members {
			for _, scope := range v.scopesOf(m.Server) {
				if !slices.Contains(scopes, scope) {
					scopes = append(scopes, scope)
				}
			}
		}
	}
	return scopes
}

// hasScopes reports whether a client has scopes: by its newest token, and with HTTP+SSE also by the token of its
// stream, which hears the answers. Tokens of the file have no scopes, and need none.
func (v *View) hasScopes(client *asker.Asker, scopes []string) bool {
	if len(scopes) == 0 || !login.IsOfIssuer(client.Principal) {
		return true
	}
	tokens := []string{client.Credentials()}
	if client.OfStream != "" {
		tokens = append(tokens, client.OfStream)
	}
	for _, token := range tokens {
		has, _ := v.resource.Scopes(token)
		for _, scope := range scopes {
			if !slices.Contains(has, scope) {
				return false
			}
		}
	}
	return true
}
