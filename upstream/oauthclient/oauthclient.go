// Package oauthclient gets the gateway its tokens for a remote MCP server from an OAuth 2.0
// token endpoint. A [Config] is the Credentials of an upstream.URL.
package oauthclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/time/rate"
)

// The values of Config.Grant.
const (
	ClientCredentials = "client-credentials" // RFC 6749 section 4.4
	RefreshToken      = "refresh-token"      // RFC 6749 section 6
	TokenExchange     = "token-exchange"     // RFC 8693
)

var grantTypes = map[string]string{
	ClientCredentials: "client_credentials",
	RefreshToken:      "refresh_token",
	TokenExchange:     "urn:ietf:params:oauth:grant-type:token-exchange",
}

// Config says how to get tokens. No log line or error shows a secret of it.
type Config struct {
	// TokenURL is the token endpoint. Its redirects are not followed.
	TokenURL string
	// ClientID and ClientSecret are the gateway's own. A public client has no secret.
	ClientID, ClientSecret string
	// Scopes are those to ask for. Default none: the endpoint chooses.
	Scopes []string
	// Resource and Audience say what the token is for (RFC 8707, RFC 8693). Default none.
	Resource, Audience string
	// Grant is one of the constants above. With TokenExchange, each client has a token of its
	// own, for the bearer token with which it has opened its session:
	// gateway.Options.ForwardHeaders must name Authorization. The client's token goes to the
	// token endpoint, never to the server. Otherwise all clients share one token. Default
	// ClientCredentials.
	Grant string
	// RefreshTokenFile has the refresh token. One that replaces it is written there, with
	// mode 0600.
	RefreshTokenFile string
}

// Check reports what is wrong with c, without asking the endpoint.
func (c Config) Check() error {
	at, err := url.Parse(c.TokenURL)
	switch {
	case err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "":
		return errors.New("token-url: want the URL of the token endpoint, which begins with https://")
	case c.ClientID == "":
		return errors.New("client-id: want the name of the gateway at the token endpoint")
	case c.Grant != "" && grantTypes[c.Grant] == "":
		return fmt.Errorf("grant: want %s, %s or %s", ClientCredentials, RefreshToken, TokenExchange)
	case (c.Grant == RefreshToken) != (c.RefreshTokenFile != ""):
		return fmt.Errorf("refresh-token-file: want the file of the token with the grant %s, and with no other", RefreshToken)
	}
	return nil
}

// Authorizer returns a function for one client, or for all if client is empty. See
// upstream.Credentials.
func (c Config) Authorizer(client string, log *slog.Logger) func(ctx context.Context, refused string) (string, error) {
	return c.newSource(client, log).authorize
}

func (c Config) newSource(client string, log *slog.Logger) *source {
	s := &source{
		file: c.RefreshTokenFile, log: log, limit: rate.NewLimiter(rate.Every(2*time.Second), 5),
		conf: clientcredentials.Config{
			ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.TokenURL, Scopes: c.Scopes, EndpointParams: url.Values{},
		},
		client: &http.Client{
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if c.ClientSecret == "" {
		s.conf.AuthStyle = oauth2.AuthStyleInParams
	}
	for name, value := range map[string]string{"grant_type": grantTypes[c.Grant], "resource": c.Resource, "audience": c.Audience} {
		if value != "" {
			s.conf.EndpointParams.Set(name, value)
		}
	}
	if c.Grant == TokenExchange {
		scheme, token, _ := strings.Cut(client, " ")
		if s.lacks = !strings.EqualFold(scheme, "Bearer") || token == ""; !s.lacks {
			s.conf.EndpointParams.Set("subject_token", token)
			s.conf.EndpointParams.Set("subject_token_type", "urn:ietf:params:oauth:token-type:access_token")
		}
	}
	return s
}
