package config

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"os"
	"strings"

	"github.com/mcp-sse/mcp-sse/front"
)

// check returns an error if options contradict each other, or if the files that they
// name are wrong. It reads the tokens, and makes the remote servers.
func (c *Config) check(lookupEnv func(string) (string, bool)) error {
	if err := c.checkStdio(); err != nil {
		return err
	}
	if c.Does() != "stdio" {
		if err := errors.Join(c.checkTLS(), c.readTokens(), c.checkExposure("addr", string(c.Addr)), c.checkExposure("admin-addr", string(c.AdminAddr))); err != nil {
			return err
		}
	}
	for _, n := range c.TrustedProxies {
		if netip.Prefix(n).Bits() == 0 {
			c.warn("%s %s: any client can choose the address that limits and logs see", c.Place("trusted-proxies"), netip.Prefix(n))
		}
	}
	if c.AdminAddr != "" && c.AdminAddr == c.Addr && !strings.HasSuffix(string(c.Addr), ":0") {
		return c.refuse("admin-addr", "want another address than --addr")
	}
	if len(c.Servers) > 0 {
		for _, option := range []string{commandKey, "url", "header", "forward-header"} {
			if c.given[option] != "" {
				return c.refuse(option, "want it in an entry of servers, each of which says what it serves")
			}
		}
	}
	for _, s := range c.Each() {
		if err := s.check(c, lookupEnv); err != nil {
			return err
		}
	}
	return nil
}

// checkStdio refuses flags that have no effect with stdio. Variables and a file may be
// those of a daemon.
func (c *Config) checkStdio() error {
	if c.Does() != "stdio" {
		return nil
	}
	if len(c.Servers) > 0 {
		return errors.New("servers: stdio serves one server")
	}
	for _, flag := range c.flags {
		if flag.Tag.Has("http") && c.given[flag.Name] == "--"+flag.Name {
			return c.refuse(flag.Name, "has no effect with stdio, which serves no HTTP")
		}
	}
	return nil
}

func (c *Config) checkTLS() error {
	switch {
	case c.TLSCert == "" && c.TLSKey == "":
	case c.TLSKey == "":
		return c.refuse("tls-cert", "needs --tls-key, the file of its key")
	case c.TLSCert == "":
		return c.refuse("tls-key", "needs --tls-cert, the file of its certificate")
	default:
		if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
			return c.refuse("tls-cert", "%s with the key %s: %v", c.TLSCert, c.TLSKey, err)
		}
	}
	return nil
}

// Exposed reports whether other machines reach an address without authentication.
func (c *Config) Exposed(addr string) bool {
	return addr != "" && c.AuthTokensFile == "" && !front.IsLoopback(addr)
}

// checkExposure refuses an exposed address, or warns of it with --insecure: everyone who
// reaches it can run the tools of the server.
func (c *Config) checkExposure(option, addr string) error {
	switch {
	case !c.Exposed(addr):
	case !c.Insecure:
		return c.refuse(option, "other machines may reach %s; want a loopback address such as 127.0.0.1:8080, --auth-tokens-file, or --insecure to allow it", addr)
	case option == "addr":
		c.warn("%s %s without authentication: everyone who reaches it can run the tools of the server", c.Place(option), addr)
	default:
		c.warn("%s %s without authentication: everyone who reaches it can read /metrics and /connections", c.Place(option), addr)
	}
	return nil
}

// check checks one server.
func (s *Server) check(c *Config, lookupEnv func(string) (string, bool)) error {
	if s.InitializationTimeout > s.StartTimeout {
		return s.refuse("initialization-timeout", "must be at most %s", s.Place("start-timeout"))
	}
	switch s.Kind() {
	case OfCommand:
		if s.URL != "" {
			return s.refuse("url", "want either a command or a URL, as both say what to serve")
		}
		if s.Command[0] == "" {
			return errors.New("the command: want a program, whose name is not empty")
		}
		if info, err := os.Stat(s.Dir); s.Dir != "" && (err != nil || !info.IsDir()) {
			return s.refuse("dir", "want a directory that exists, but got %q", s.Dir)
		}
	case ofURL:
		if s.Sessions != "shared" && s.given["warm"] == "" {
			s.Warm = 0 // given for all servers
		}
	}
	for _, flag := range s.flags {
		if kind := flag.Tag.Get("for"); kind != "" && kind != s.Kind() && s.given[flag.Name] != "" {
			return s.refuse(flag.Name, "has no effect without a %s to serve", kind)
		}
	}
	if s.Kind() == ofURL {
		return s.makeRemote(c, lookupEnv)
	}
	return nil
}
