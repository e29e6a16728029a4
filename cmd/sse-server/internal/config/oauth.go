package config

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/auth/oauth"
	"github.com/mcp-sse/mcp-sse/auth/oauthclient"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/login"
)

// makeAccess makes each server a resource of the issuer in the pairs of oauth, if there is one,
// beside the tokens of the file. A token of the issuer makes nobody an operator: on the main
// address, which strangers reach then, the routes for operators need a file of tokens.
func (c *Config) makeAccess(lookupEnv func(string) (string, bool)) error {
	var o oauth.Options
	err := c.readPairs(&c.Server, oauthKey, c.OAuth, lookupEnv, map[string]*string{
		"issuer": &o.Issuer, "principal-claim": &o.PrincipalClaim,
		"introspection-url": &o.Introspection.URL, "client-id": &o.Introspection.ClientID,
		"client-secret": &o.Introspection.Secret, "page-client-id": &c.pageClient,
	})
	if err != nil {
		return err
	}
	c.Metadata = make(map[string]http.Handler)
	for _, s := range append([]*Server{&c.Server}, c.Endpoints()...) {
		s.Authenticate = c.Operators
		for _, option := range []string{oauthKey, "scopes"} {
			if o.Issuer == "" && s.given[option] != "" {
				return s.refuse(option, "has no effect without an issuer in oauth")
			}
		}
	}
	defer func() { c.Scrapers = c.Operators }()
	if o.Issuer == "" {
		public, err := url.Parse(c.PublicURL)
		if c.PublicURL != "" && (err != nil || public.Host == "" || public.Scheme != "http" &&
			public.Scheme != "https" || public.RawQuery != "" || public.User != nil) {
			return c.refuse("public-url", "want the address that users type, such as https://gw.example.com")
		}
		return nil
	}
	if c.PublicURL == "" {
		return c.refuse(oauthKey, "want public-url too: the address that users type, such as https://gw.example.com")
	}
	names := strings.NewReplacer("oauth: Resource", "public-url", "oauth: Issuer", "oauth: issuer",
		"oauth: Introspection", "oauth: introspection-url", "ClientID", "client-id", "Secret", "client-secret")
	for _, s := range c.Endpoints() {
		at := strings.TrimSuffix(c.PublicURL, "/") + c.PrefixOf(s)
		o.Resource, o.Aliases, o.Scopes = at+gateway.Path, []string{at + "/sse"}, s.Scopes
		o.Supported = c.scopesOfMembers(s)
		s.resource, err = oauth.New(o)
		if err != nil {
			return fmt.Errorf("%s: %s", c.Config, names.Replace(err.Error()))
		}
		maps.Copy(c.Metadata, s.resource.Metadata())
		s.protection, s.Authenticate, s.Reauthenticate = o, s.either(c.Operators), true
	}
	if c.Operators == nil && c.AdminAddr == "" {
		c.Operators = func(*http.Request) (string, error) {
			return "", &auth.Error{Message: "operators need a token of auth-tokens-file, or admin-addr"}
		}
	}
	return nil
}

// SamePrincipals reports whether tokens name the same principals as with the configuration
// before: they are of the same issuer, by the same claim.
func (c *Config) SamePrincipals(before *Config) bool {
	return c.authority() == before.authority()
}

// KeepResources takes over the resources of the configuration before that are the same in c, with
// the keys and tokens that they know: the issuer may be down. Of one that has changed, such as its scopes, it takes
// over what it knows.
func (c *Config) KeepResources(before *Config) {
	for _, s := range c.Endpoints() {
		for _, old := range before.Endpoints() {
			switch {
			case s.resource == nil || old.resource == nil:
			case reflect.DeepEqual(s.protection, old.protection):
				s.resource = old.resource
			case s.Name == old.Name:
				s.resource.Inherit(old.resource)
			}
		}
	}
}

// either authenticates by static, unless it is nil, or by the tokens for the resource.
func (s *Server) either(static func(*http.Request) (string, error)) func(*http.Request) (string, error) {
	return func(r *http.Request) (string, error) {
		if static != nil {
			if principal, err := static(r); err == nil {
				return principal, nil
			}
		}
		principal, err := s.resource.Authenticate(r)
		return login.OfIssuer + principal, err // those of the file have no colon
	}
}

// makeCredentials gives the remote server the credentials of oauth-client.
func (s *Server) makeCredentials(c *Config, lookupEnv func(string) (string, bool)) error {
	var o oauthclient.Config
	var scopes, grant string
	if err := c.readPairs(s, oauthClientKey, s.OAuthClient, lookupEnv, map[string]*string{
		"token-url": &o.TokenURL, "client-id": &o.ClientID, "client-secret": &o.ClientSecret, "scopes": &scopes,
		"grant":    &grant,
		"resource": &o.Resource, "audience": &o.Audience, "refresh-token-file": &o.RefreshTokenFile,
	}); err != nil {
		return err
	}
	o.Scopes = strings.Fields(scopes)
	err := o.Grant.UnmarshalText([]byte(grant))
	if err != nil {
		err = fmt.Errorf("grant: %w", err)
	} else {
		err = o.Check()
	}
	exchanges := o.Grant == oauthclient.TokenExchange
	switch {
	case err != nil:
	case s.owner != ours && o.RefreshTokenFile != "":
		err = fmt.Errorf("refresh-token-file: the file of a client cannot have a file of this machine sent to %s: "+
			"write the server into a file of your own", hostOf(o.TokenURL))
	case slices.ContainsFunc(s.ForwardedHeaders(), isAuthorization),
		slices.ContainsFunc(slices.Collect(maps.Values(s.remote.Rename)), isAuthorization):
		err = fmt.Errorf("contradicts %s of Authorization, the header with the token", s.Place("forward-header"))
	case exchanges && c.AuthTokensFile != "":
		err = fmt.Errorf("grant: the token endpoint does not know the tokens of %s", c.Place("auth-tokens-file"))
	case exchanges && s.Sessions == "shared":
		err = fmt.Errorf("grant: clients with a token each cannot share a session, want sessions: per-connection")
	case exchanges && len(c.OAuth) == 0:
		err = fmt.Errorf("grant: want oauth too: without it everyone's tokens would go to the token endpoint")
	}
	if err != nil {
		return s.refuse(oauthClientKey, "%v", err)
	}
	info, _ := os.Stat(o.RefreshTokenFile) // which may come later
	c.warnOfOthers(o.RefreshTokenFile, info)
	s.remote.Credentials = o
	return nil
}

func isAuthorization(name string) bool { return strings.EqualFold(name, "Authorization") }

// readPairs sets the values of the keys that the pairs of an option have.
func (c *Config) readPairs(s *Server, option string, pairs []string, lookupEnv func(string) (string, bool),
	keys map[string]*string) (err error) {
	for _, pair := range pairs {
		name, text, _ := strings.Cut(pair, "=")
		value := keys[name]
		if value == nil {
			return c.refuseFor(s, option, "unknown key %q, want one of %s", name,
				strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		}
		*value, err = c.expand(text, s.expansion(lookupEnv))
		if err != nil {
			return c.refuseFor(s, option, "%s: %v", name, err)
		}
	}
	return nil
}
