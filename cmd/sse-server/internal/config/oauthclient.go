package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/upstream/oauthclient"
)

// makeCredentials gives the remote server the credentials of oauth-client.
func (s *Server) makeCredentials(c *Config, lookupEnv func(string) (string, bool)) error {
	var o oauthclient.Config
	var scopes string
	if err := c.readPairs(s, oauthClientKey, s.OAuthClient, lookupEnv, map[string]*string{
		"token-url": &o.TokenURL, "client-id": &o.ClientID, "client-secret": &o.ClientSecret, "scopes": &scopes, "grant": &o.Grant,
		"resource": &o.Resource, "audience": &o.Audience, "refresh-token-file": &o.RefreshTokenFile,
	}); err != nil {
		return err
	}
	o.Scopes = strings.Fields(scopes)
	err := o.Check()
	exchanges := o.Grant == oauthclient.TokenExchange
	switch {
	case err != nil:
	case slices.ContainsFunc(s.ForwardHeader, isAuthorization):
		err = fmt.Errorf("contradicts %s of Authorization, the header with the token", s.Place("forward-header"))
	case exchanges && c.AuthTokensFile != "":
		err = fmt.Errorf("grant: the token endpoint does not know the tokens of %s", c.Place("auth-tokens-file"))
	case exchanges && s.Sessions == "shared":
		err = fmt.Errorf("grant: clients with a token each cannot share a session, want sessions: per-connection")
	}
	if err != nil {
		return s.refuse(oauthClientKey, "%v", err)
	}
	c.warnOfOthers(o.RefreshTokenFile)
	if at, _ := url.Parse(o.TokenURL); at.Scheme == "http" && !front.IsLoopback(at.Host) {
		c.warn("%s: token-url: secrets go over the network in plain text", s.Place(oauthClientKey))
	}
	s.remote.Credentials = o
	return nil
}

func isAuthorization(name string) bool { return strings.EqualFold(name, "Authorization") }
