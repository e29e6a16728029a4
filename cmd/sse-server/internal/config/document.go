package config

import (
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/login"
)

// documentOf returns the client id metadata document of the logins at a server, which a gateway with this configuration
// serves; false if there is none: no issuer could read it, or the gateway uses no login there.
func (c *Config) documentOf(s *Server) (login.Document, bool) {
	d := login.Document{Page: c.publicBase() + c.loginPath(s), OnThisMachine: s.LoginUse == "shared"}
	isUsed := s.Kind() == ofURL && (s.LoginUse == "shared" || s.LoginUse == perPrincipal)
	return d, isUsed && d.URL() != ""
}

// ClientDocument returns the client id metadata document at a path; false if there is none.
func (c *Config) ClientDocument(path string) (login.Document, bool) {
	page, isOne := strings.CutSuffix(path, login.DocumentPath)
	if !isOne {
		return login.Document{}, false
	}
	for _, s := range c.Each() {
		if c.loginPath(s) == page {
			return c.documentOf(s)
		}
	}
	return login.Document{}, false
}

// DocumentURL returns the URL of the document of a login that the command login makes at a server, for the gateway of
// the file, which serves it; empty: there is none.
func (c *Config) DocumentURL(s *Server) string {
	if d, has := c.documentOf(s); has && d.OnThisMachine && c.Config != "" {
		return d.URL()
	}
	return ""
}
