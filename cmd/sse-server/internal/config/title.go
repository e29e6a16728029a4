package config

import (
	"cmp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/naming"
)

// Title is the name of a server for people: in the banner, in the log and in what they paste into
// clients. It is that of its entry in the file, else that of --name, else it comes from what is served:
// the package that npx -y @modelcontextprotocol/server-everything starts is called everything.
func (c *Config) Title(s *Server) string {
	switch {
	case s.Name != "":
		return s.Name
	case c.Called != "":
		return c.Called
	case s.Kind() == OfDemo:
		return OfDemo
	case s.Kind() == ofURL:
		return cmp.Or(pathName(naming.OfURL(s.remote.Address)), "remote")
	}
	name, isLaunched := naming.OfCommand(s.Command, s.Dir)
	if isLaunched {
		name = naming.Short(name)
	}
	return cmp.Or(pathName(name), "server")
}

// Installs reports whether the command of s may install something before it serves.
func (s *Server) Installs() bool { return s.Kind() == OfCommand && naming.Installs(s.Command) }
