package config

import (
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

// unusedDaemon is how long a daemon that sse-server stdio --connect has started goes on without a
// client.
const unusedDaemon = "10m"

// checkConnect checks stdio's option connect, and makes the arguments of the daemon to connect to.
func (c *Config) checkConnect() error {
	if c.Stdio.Connect == "" {
		return nil
	}
	at, err := url.Parse(c.Stdio.Connect)
	prefix, isMCP := "", false
	if err == nil {
		prefix, isMCP = strings.CutSuffix(at.Path, "/mcp")
	}
	if err != nil || at.Scheme != "http" || at.Port() == "" || !isMCP || at.RawQuery != "" || at.User != nil ||
		!httpcheck.IsLoopback(at.Host) {
		return c.refuse("connect", "%q: want a URL of this machine as the name, such as http://127.0.0.1:8080/mcp; "+
			"for a server that runs use --url", c.Stdio.Connect)
	}
	for _, option := range []string{"addr", "prefix", "auth-tokens-file", oauthKey, "tls-cert", "nats"} {
		if c.given[option] != "" {
			return c.refuse("connect", "not with %s: the sse-server that is started has no port; leave it out, "+
				"or start one with a port yourself and use stdio --url", c.given[option])
		}
	}
	if c.StateDir == "" {
		return c.refuse("connect", "neither STATE_DIRECTORY nor HOME is set: there is no place for its lock")
	}
	isServed := func(s *Server) bool { return c.PrefixOf(s)+"/mcp" == at.Path }
	if len(c.Servers) > 0 && !slices.ContainsFunc(c.Endpoints(), isServed) {
		return c.refuse("connect", "%q: no server or view of %s is at this path", c.Stdio.Connect, c.Config)
	}
	c.Connect = at
	if c.given["exit-unused"] == "" {
		c.DaemonArgs = append(c.DaemonArgs, "--exit-unused="+unusedDaemon)
	}
	if c.given["start-check"] == "" {
		c.DaemonArgs = append(c.DaemonArgs, "--no-start-check") // its first client is coming
	}
	if prefix != "" && len(c.Servers) == 0 {
		c.DaemonArgs = append(c.DaemonArgs, "--prefix="+prefix)
	}
	if len(c.Command) > 0 && c.given[commandKey] == "the command" {
		c.DaemonArgs = append(append(c.DaemonArgs, "--"), c.Command...)
	}
	return nil
}

// argsOf returns a flag as it was given.
func argsOf(flag *kong.Flag) []string {
	name := "--" + flag.Name
	if flag.IsBool() {
		if !reflect.Indirect(flag.Target).Bool() {
			name = "--no-" + flag.Name
		}
		return []string{name}
	}
	if all, isList := flag.Target.Interface().([]string); isList && flag.Tag.Sep == -1 {
		var args []string
		for _, one := range all {
			args = append(args, name+"="+one)
		}
		return args
	}
	return []string{name + "=" + flagText(flag.Target)}
}

// DependsOnDir reports whether what is served depends on the directory in which sse-server was started.
func (c *Config) DependsOnDir() bool {
	paths := append(c.Files(), c.IDKeyFile, c.AuditLog)
	for _, s := range c.Each() {
		if s.Kind() == OfCommand && s.Dir == "" {
			return true
		}
		paths = append(paths, s.Dir)
	}
	return slices.ContainsFunc(paths, func(path string) bool {
		return path != "" && path != Stdout && !filepath.IsAbs(path)
	})
}

// Names reports whether the configuration names a variable of the environment: a reference of a file, or env-allow.
func (c *Config) Names(variable string) bool {
	return slices.Contains(c.references, variable) ||
		slices.ContainsFunc(c.Each(), func(s *Server) bool { return slices.Contains(s.EnvAllow, variable) })
}
