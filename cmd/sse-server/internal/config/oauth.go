package config

import (
	"fmt"
	"strings"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/oauth"
)

// OAuth is the key oauth of the file: the issuer of tokens for clients.
type OAuth struct {
	Issuer         string   `hidden:""`
	Scopes         []string `hidden:""`
	PrincipalClaim string   `hidden:""`
	Introspection  struct {
		URL          string `hidden:""`
		ClientID     string `hidden:""`
		ClientSecret string `hidden:"" secret:""`
	} `embed:"" prefix:"introspection-"`
}

// OAuthOptions returns which resource s is. Its aliases are other addresses of s.
func (c *Config) OAuthOptions(s *Server) oauth.Options {
	at, scopes, in := strings.TrimSuffix(c.PublicURL, "/")+c.PrefixOf(s), s.Scopes, c.OAuth.Introspection
	if s.given["scopes"] == "" && scopes == nil {
		scopes = c.OAuth.Scopes
	}
	return oauth.Options{
		Resource: at + gateway.Path, Aliases: []string{at + "/sse"}, Issuer: c.OAuth.Issuer, Scopes: scopes, PrincipalClaim: c.OAuth.PrincipalClaim,
		Introspection: oauth.Introspection{URL: in.URL, ClientID: in.ClientID, Secret: in.ClientSecret},
	}
}

// checkOAuth checks the options of OAuth, and reads the secret.
func (c *Config) checkOAuth(lookupEnv func(string) (string, bool)) (err error) {
	if c.OAuth.Issuer == "" {
		for option := range c.given {
			if option == "public-url" || option == "scopes" || strings.HasPrefix(option, "oauth-") && option != oauthClientKey {
				return c.refuse(option, "has no effect without an issuer in oauth")
			}
		}
		return nil
	}
	if c.PublicURL == "" {
		return c.refuse("oauth-issuer", "want public-url too: the address that users type, such as https://gw.example.com")
	}
	secret := &c.OAuth.Introspection.ClientSecret
	if *secret, err = c.expand(*secret, lookupEnv); err != nil {
		return c.refuse("oauth-introspection-client-secret", "%v", err)
	}
	names := strings.NewReplacer("oauth: Resource", "public-url", "oauth: Issuer", "oauth-issuer", "oauth: Scopes", "scopes", "oauth: Introspection", "oauth-introspection")
	for _, s := range c.Each() {
		if _, err := oauth.New(c.OAuthOptions(s)); err != nil {
			return fmt.Errorf("%s: %s", c.Config, names.Replace(err.Error()))
		}
	}
	return nil
}

// isGroup reports whether a key of the file holds other options.
func (s *Server) isGroup(key string) bool {
	for _, flag := range s.flags {
		if s.Name == "" && flag.Hidden && strings.HasPrefix(flag.Name, key+"-") {
			return true
		}
	}
	return false
}
