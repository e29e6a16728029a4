package config

import (
	"fmt"
	"slices"
)

// serversForm is the form of the key servers.
const serversForm = "a mapping of names to options, such as {docs: {command: [npx, -y, server]}}"

// routes are paths that no server may be called.
var routes = []string{"sse", "healthz", "readyz", "metrics", "connections"}

// addServer adds a server of the file: a copy of the configuration of all, with
// its own options set.
func (c *Config) addServer(entry section) {
	s := *c
	s.daemon, s.Servers, s.command, s.unsure = c, nil, nil, false
	s.origin = map[string]origin{serversKey: entry.from}
	s.Options.Name, s.Options.Prefix = entry.name, c.Options.Prefix+"/"+entry.name
	s.rows = s.table()
	if slices.Contains(routes, entry.name) {
		c.report.add(entry.from.line, "%s: want another name: /%s is a route of sse-server", entry.from.name, entry.name)
	}
	for i := range s.rows {
		o := &s.rows[i]
		in, ok := entry.values[o.name]
		switch {
		case ok && o.where == topLevel:
			c.report.add(in.from.line, "%s: want it at the top level, as it is about all servers", in.from.name)
		case ok:
			s.set(o, in)
		}
	}
	s.takeCommand(entry)
	c.Servers = append(c.Servers, &s)
}

// takeCommand takes the command of a section of the file, and notes whether it
// tells what to serve.
func (c *Config) takeCommand(s section) {
	c.unsure = c.unsure || s.unknown
	in, ok := s.values[commandKey]
	switch {
	case !ok:
	case in.kind != sequence || in.nested || len(in.texts) == 0 || in.texts[0] == "":
		c.unsure = true
		c.report.add(in.from.line, "%s %q: want a list of the program and its arguments, such as [npx, -y, server]",
			in.from.name, in.String())
	default:
		c.command, c.commandInFile = in.texts, true
	}
}

// checkServers refuses what says what to serve beside servers. The servers are
// then not checked for it.
func (c *Config) checkServers() {
	const want = "%s: want it in an entry of servers, each of which says what it serves"
	before := len(c.report.faults)
	if len(c.command) > 0 {
		c.report.add(0, want, fmt.Sprintf("command %q", c.command[0]))
	}
	for _, o := range c.rows {
		if from := c.origin[o.name]; o.where == serving && c.given(o.name) && !from.faulty && (o.name != "demo" || c.demo) {
			c.report.add(from.line, want, from.name)
		}
	}
	for _, s := range c.Servers {
		s.unsure = s.unsure || len(c.report.faults) > before
	}
}

// Each returns the configuration of each server: of one without a name, or of
// those of the file.
func (c *Config) Each() []*Config {
	if len(c.Servers) > 0 {
		return c.Servers
	}
	return []*Config{c}
}
