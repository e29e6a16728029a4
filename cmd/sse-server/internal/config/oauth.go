package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/oauth"
)

// OAuthOptions returns which resource s is. Its aliases are other addresses of s.
func (c *Config) OAuthOptions(s *Server) oauth.Options {
	o, at := c.Resource, strings.TrimSuffix(c.PublicURL, "/")+c.PrefixOf(s)
	o.Resource, o.Aliases, o.Scopes = at+gateway.Path, []string{at + "/sse"}, s.Scopes
	return o
}

// checkOAuth reads the pairs of oauth, and checks them.
func (c *Config) checkOAuth(lookupEnv func(string) (string, bool)) error {
	o := &c.Resource
	err := c.readPairs(&c.Server, oauthKey, c.OAuth, lookupEnv, map[string]*string{
		"issuer": &o.Issuer, "principal-claim": &o.PrincipalClaim,
		"introspection-url": &o.Introspection.URL, "client-id": &o.Introspection.ClientID, "client-secret": &o.Introspection.Secret,
	})
	if err != nil {
		return err
	}
	if o.Issuer == "" {
		for _, option := range []string{oauthKey, "public-url", "scopes"} {
			if c.given[option] != "" {
				return c.refuse(option, "has no effect without an issuer in oauth")
			}
		}
		return nil
	}
	if c.PublicURL == "" {
		return c.refuse(oauthKey, "want public-url too: the address that users type, such as https://gw.example.com")
	}
	names := strings.NewReplacer("oauth: Resource", "public-url", "oauth: Issuer", "oauth: issuer", "oauth: Scopes", "scopes", "oauth: Introspection", "oauth: introspection-url")
	for _, s := range c.Each() {
		if _, err := oauth.New(c.OAuthOptions(s)); err != nil {
			return fmt.Errorf("%s: %s", c.Config, names.Replace(err.Error()))
		}
	}
	return nil
}

// readPairs sets the values of the keys that the pairs of an option have.
func (c *Config) readPairs(s *Server, option string, pairs []string, lookupEnv func(string) (string, bool), keys map[string]*string) (err error) {
	for _, pair := range pairs {
		name, text, _ := strings.Cut(pair, "=")
		value := keys[name]
		if value == nil {
			return s.refuse(option, "unknown key %q, want one of %s", name, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		}
		if *value, err = c.expand(text, lookupEnv); err != nil {
			return s.refuse(option, "%s: %v", name, err)
		}
	}
	return nil
}
