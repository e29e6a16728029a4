package config

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// clientsKey is the key of the file for servers as clients such as Claude Desktop and
// Cursor write them in their own configuration.
const clientsKey = "mcpServers"

// clientNames are the options that clients call otherwise.
var clientNames = map[string]string{"headers": "header", "cwd": "dir"}

// readClientServers adds the entries of the key mcpServers.
func (c *Config) readClientServers(node ast.Node) error {
	const want = clientsKey + `: want a mapping of names to servers, such as {"docs": {"command": "npx", "args": ["-y", "server"]}}`
	before := len(c.Servers)
	err := c.readEntries(node, want, c.readClientServer)
	if err == nil && len(c.Servers) == before {
		err = c.at(node.GetToken(), "%s: all servers are disabled", clientsKey)
	}
	return err
}

// readClientServer adds one entry of the key mcpServers, unless it is disabled.
func (c *Config) readClientServer(entry *ast.MappingValueNode) error {
	members, ok := mappingOf(entry.Value)
	if !ok {
		return c.at(entry.Value.GetToken(), "want a mapping with command or url")
	}
	key, values := entry.Key.GetToken(), map[string]ast.Node{}
	for _, member := range members {
		if _, isNull := member.Value.(*ast.NullNode); !isNull {
			values[member.Key.GetToken().Value] = member.Value
		}
	}
	switch off := values["disabled"]; {
	case off != nil && off.GetToken().Value == "true":
		return nil
	case values[commandKey] == nil && values["url"] == nil:
		return c.at(key, "%s.%s: want command or url", clientsKey, key.Value)
	}
	s, err := c.addServer(pathName(key.Value), clientsKey, key)
	for _, member := range members {
		if name := member.Key.GetToken().Value; err == nil && values[name] != nil {
			err = c.readMember(s, name, values)
		}
	}
	return err
}

// readMember sets the option of s that a member of an entry of mcpServers means.
func (c *Config) readMember(s *Server, name string, values map[string]ast.Node) error {
	flag, nodes, kind := s.option(cmp.Or(clientNames[name], name)), []ast.Node{values[name]}, ofURL
	if values[commandKey] != nil {
		kind = OfCommand
	}
	switch {
	case name == "disabled", name == "type", name == "args" && kind == OfCommand: // the URL and the command have it
		return nil
	case flag == nil, !slices.Contains([]string{"", kind}, flag.Tag.Get("for")):
		c.ignored = append(c.ignored, name)
		return nil
	case name == commandKey && values["args"] != nil:
		nodes = append(nodes, values["args"])
	}
	if err := c.setFrom(s, flag, name, nodes...); err != nil {
		return err
	}
	if slices.ContainsFunc(slices.Concat(s.Command, s.Env), reference.MatchString) {
		c.warn("%s: ${…} is replaced only in url and headers", s.Place(nameKey))
	}
	return nil
}

// notInPath matches what the name of a server in a path cannot have.
var notInPath = regexp.MustCompile(`[^a-z0-9_]`)

// pathName returns a name of a client's configuration as one that a path can have, which
// may be empty.
func pathName(name string) string {
	name = strings.TrimLeft(notInPath.ReplaceAllString(strings.ToLower(name), "-"), "-_")
	return strings.TrimRight(name[:min(len(name), 64)], "-")
}
