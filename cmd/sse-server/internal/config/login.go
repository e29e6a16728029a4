package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
)

// loginKey is the option that says whose login the requests to a server carry.
const loginKey = "login"

// isAboutLogin reports whether the command is about the login at one server.
func (c *Config) isAboutLogin() bool { return c.Does == "login" || c.Does == "logout" }

// aimLogin makes the URL that login or logout names the server. It checks what does not need the file.
// stateDir has the logins.
func (c *Config) aimLogin(stateDir string) error {
	target, example := &c.LogIn.Target, "sse-server "+c.Does+" https://mcp.example.com/mcp"
	if c.Does == "logout" {
		target = &c.LogOut.Target
	}
	switch {
	case c.LogOut.Forget && c.LogOut.Principal == "":
		return c.refuse("forget", "has no effect without --principal")
	case c.LogIn.ClientSecret != "" && c.LogIn.ClientID == "":
		return c.refuse("client-secret", "has no effect without --client-id")
	case c.LogIn.ClientID != "" && c.LogIn.Issuer == "":
		return c.refuse("client-id", "name the issuer too, with --issuer: a client id is sent only to an issuer that "+
			"you name")
	case strings.Contains(*target, "://"):
		server, err := login.URLOf(stateDir, *target)
		if err == nil {
			_, err = login.Canonical(server)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Does, err)
		}
		c.URL, c.Config, *target = server, "", ""
		c.given["url"] = "--url"
	case strings.ContainsAny(*target, "./") && c.Config == "":
		at, _, _ := strings.Cut(*target, "?") // a query may be a key
		scheme := "https://"
		if host, _, _ := strings.Cut(at, "/"); httpcheck.IsLoopback(host) {
			scheme = "http://"
		}
		return fmt.Errorf("%s: %s is no URL: put %s before it; for the name of a server add --config FILE", c.Does, at,
			scheme)
	case *target != "" && c.Config == "":
		return fmt.Errorf("%s: want the URL of the server, as in: %s; or --config too, with the file in which %s is",
			c.Does, example, *target)
	case *target == "" && c.URL == "" && c.Config == "":
		return fmt.Errorf("%s: name the URL of the server, as in: %s", c.Does, example)
	}
	return nil
}

// LoginServer returns the server that login or logout means.
func (c *Config) LoginServer() (*Server, error) {
	servers, _ := c.Chosen()
	var remote []string
	for _, s := range servers {
		if s.Kind() == ofURL {
			remote = append(remote, s.Name)
		}
	}
	switch {
	case len(remote) == 1:
		s := servers[slices.IndexFunc(servers, func(s *Server) bool { return s.Kind() == ofURL })]
		if c.Does == "login" && s.LoginUse == perPrincipal {
			return nil, fmt.Errorf("login: %s has login: per-principal: each person logs in by the link that their "+
				"own client gets", c.Title(s))
		}
		return s, nil
	case len(remote) == 0:
		return nil, fmt.Errorf("%s: there is no remote server: want the name of one that has url", c.Does)
	}
	return nil, fmt.Errorf("%s: name one of the remote servers: %s", c.Does, strings.Join(remote, ", "))
}

// useLogin has the requests to the remote server carry the login of a person, if nothing else is configured. One login
// is for all clients, so a gateway that strangers can reach does not use it.
func (s *Server) useLogin(c *Config) error {
	own, strangers := s.ownCredentials(), c.strangers()
	switch at, unsafe := login.Canonical(s.remote.Address); {
	case s.LoginUse == perPrincipal && own != "":
		return c.refuseFor(s, loginKey, "contradicts the credentials that are configured: leave out one of them")
	case s.LoginUse == perPrincipal && unsafe != nil:
		return c.refuseFor(s, loginKey, "%v", unsafe)
	case s.LoginUse == perPrincipal && c.isAboutLogin():
		return nil // no login of the user of the program is used
	case s.LoginUse == perPrincipal:
		return s.useOwnLogins(c)
	case s.LoginUse == "shared" && own != "":
		return c.refuseFor(s, loginKey, "contradicts the credentials that are configured: leave out one of them")
	case s.LoginUse == "shared" && unsafe != nil:
		return c.refuseFor(s, loginKey, "%v", unsafe)
	case s.LoginUse == "off", unsafe != nil, c.StateDir == "":
	case own != "":
		s.warnOfLogin(c, at.String(), own+" has credentials for it", "leave these out")
	case s.LoginUse == "shared", strangers == "":
		s.remote.Credentials = login.Credentials{StateDir: c.StateDir, Server: s.remote.Address,
			Command: s.loginCommand(c), Header: login.HeaderText(s.remote.Header), Links: strangers == ""}
	default:
		s.lacksLogin = true
		s.warnOfLogin(c, at.String(), "with "+strangers+" clients may be those of others",
			"let all of them use it with "+s.written(loginKey, "shared"))
	}
	return nil
}

// warnOfLogin warns of a login at the server that is not used.
func (s *Server) warnOfLogin(c *Config, server, why, instead string) {
	l, _, _ := login.NewStore(c.StateDir).Newest(server) // a file that cannot be read is none that is used
	if c.isAboutLogin() || l == nil || !l.Ended.IsZero() {
		return
	}
	c.warn("%s: somebody is logged in at %s, and that is not used, as %s: %s, or say that it is not meant with %s",
		s.Place("url"), l.Public(), why, instead, s.written(loginKey, "off"))
}

// LacksLogin reports whether the remote server has neither credentials nor a login because nobody has said which, and
// clients may be those of others.
func (s *Server) LacksLogin() bool { return s.lacksLogin }

// written returns an option of a server as it is written where the others are.
func (s *Server) written(option, value string) string {
	if s.IsInFile() {
		return option + ": " + value
	}
	return "--" + option + " " + value
}

// ownCredentials returns where credentials for the remote server are configured; empty: nowhere.
func (s *Server) ownCredentials() string {
	at, err := url.Parse(s.remote.Address)
	switch {
	case len(s.OAuthClient) > 0:
		return s.Place("oauth-client")
	case s.remote.Header.Get("Authorization") != "":
		return s.Place("header")
	case err == nil && at.User != nil:
		return s.Place("url")
	case slices.ContainsFunc(s.ForwardedHeaders(), isAuthorization):
		return s.Place("forward-header")
	}
	return ""
}

// strangers returns why not all clients are of the person whose machine this is; empty: they are, on stdio, or at a
// loopback address that nothing leads to from elsewhere.
func (c *Config) strangers() (option string) {
	if c.Does == "stdio" || c.Shared != "" || c.isAboutLogin() {
		return ""
	}
	for _, one := range []struct {
		option string
		is     bool
	}{
		{"auth-tokens-file", c.AuthTokensFile != ""}, {oauthKey, len(c.OAuth) > 0}, {"public-url", c.PublicURL != ""},
		{"insecure", c.Insecure}, {"trusted-proxies", len(c.TrustedProxies) > 0},
		{"allowed-hosts", len(c.AllowedHosts) > 0}, {"nats", c.NATS != ""},
		{"addr", !httpcheck.IsLoopback(string(c.Addr))},
	} {
		if one.is {
			return c.Place(one.option)
		}
	}
	return ""
}

// LocalOnly returns what reports whether a request over HTTP for one of these servers is refused if a proxy has brought
// it: somebody is logged in there, and the login is used because all clients are of this machine. It returns nil if no
// login is used for that.
func (c *Config) LocalOnly(servers ...*Server) func() bool {
	if c.Does == "stdio" || c.Shared != "" { // no proxy leads there
		return nil
	}
	var all []login.Credentials
	for _, s := range servers {
		if own, ok := s.remote.Credentials.(login.Credentials); ok && s.LoginUse == "" {
			all = append(all, own)
		}
	}
	if all == nil {
		return nil
	}
	return func() bool { return slices.ContainsFunc(all, login.Credentials.IsUsed) }
}

// UseCredentials has the requests to the remote server carry these, in place of those of the configuration.
func (s *Server) UseCredentials(c remote.Credentials) { s.remote.Credentials = c }

// loginCommand returns what a person types to log in. It has no query of the URL, which may be a key.
func (s *Server) loginCommand(c *Config) string {
	switch {
	case c.Config != "" && s.Name != "":
		return asTyped([]string{"sse-server", "login", s.Name, "--config", c.Config})
	case c.Config != "":
		return asTyped([]string{"sse-server", "login", "--config", c.Config})
	}
	return asTyped([]string{"sse-server", "login", login.Name(s.remote.Address)})
}
