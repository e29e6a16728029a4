package config

import "slices"

// serversForm is the form of the key servers.
const serversForm = "a mapping of names to options, such as {docs: {command: [npx, -y, server]}}"

// routes are paths that no server may be called.
var routes = []string{"sse", "healthz", "readyz", "metrics", "connections"}

// addServer adds a server of the file: a copy of the configuration of all, with
// its own options set.
func (c *Config) addServer(entry section) {
	s := *c
	s.daemon, s.Servers, s.unsure = c, nil, entry.unknown
	s.command, s.address, s.demo = nil, "", false
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
	c.Servers = append(c.Servers, &s)
}

// checkServers refuses what says what to serve beside servers. The servers are
// then not checked for it.
func (c *Config) checkServers() {
	for _, o := range c.rows {
		if o.where == serving && c.given(o.name) && (o.name != "demo" || c.demo) {
			c.refuse(o.name, "want it in an entry of servers, each of which says what it serves")
			for _, s := range c.Servers {
				s.unsure = true
			}
		}
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
