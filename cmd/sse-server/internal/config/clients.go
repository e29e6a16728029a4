package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// clientsKey is the key of the file for servers as clients such as Claude Desktop and
// Cursor write them in their own configuration.
const clientsKey = "mcpServers"

// clientNames are the options that clients call otherwise.
var clientNames = map[string]string{"headers": "header", "cwd": "dir"}

// clientTypes are the values of the member type. They say nothing new: sse-server finds
// out which transport a remote server has.
var clientTypes = []string{"stdio", "http", "sse", "streamable-http", "streamableHttp"}

// readClientServers adds the entries of the key mcpServers.
func (c *Config) readClientServers(node ast.Node) error {
	entries, ok := mappingOf(node)
	if !ok || len(entries) == 0 {
		return c.at(node.GetToken(), `%s: want a mapping of names to servers, such as {"docs": {"command": "npx", "args": ["-y", "server"]}}`, clientsKey)
	}
	before := len(c.Servers)
	for _, entry := range entries {
		if err := c.readClientServer(entry); err != nil {
			return err
		}
	}
	if len(c.Servers) == before {
		return c.at(node.GetToken(), "%s: all servers are disabled", clientsKey)
	}
	return nil
}

// readClientServer adds one entry of the key mcpServers, unless it is disabled.
func (c *Config) readClientServer(entry *ast.MappingValueNode) error {
	members, ok := mappingOf(entry.Value)
	if !ok {
		return c.at(entry.Value.GetToken(), "want a mapping with command or url")
	}
	values := map[string]ast.Node{}
	for _, member := range members {
		if _, isNull := member.Value.(*ast.NullNode); !isNull {
			values[member.Key.GetToken().Value] = member.Value
		}
	}
	key := entry.Key.GetToken()
	kind := ofURL
	switch off := values["disabled"]; {
	case off != nil && off.GetToken().Value == "true":
		return nil
	case values[commandKey] != nil:
		kind = OfCommand
	case values["url"] == nil:
		hint := ""
		for _, member := range members {
			hint = cmp.Or(hint, didYouMean(member.Key.GetToken().Value, commandKey, "url"))
		}
		return c.at(key, "%s.%s: want command or url%s", clientsKey, key.Value, hint)
	}
	s, err := c.addServer(pathName(key.Value), clientsKey, key)
	for _, member := range members {
		if err == nil && values[member.Key.GetToken().Value] != nil {
			err = c.readMember(s, kind, member, values["args"])
		}
	}
	return err
}

// readMember sets the option of s, of a kind of server, that a member of an entry of
// mcpServers means. args are those of the command; nil: none.
func (c *Config) readMember(s *Server, kind string, member *ast.MappingValueNode, args ast.Node) error {
	name, nodes := member.Key.GetToken().Value, []ast.Node{member.Value}
	flag := s.option(cmp.Or(clientNames[name], name))
	switch {
	case name == "disabled", name == "args" && kind == OfCommand:
		return nil
	case name == "type":
		if value := member.Value.GetToken(); !slices.Contains(clientTypes, value.Value) {
			return c.at(value, "type: want one of %s, but got %q", strings.Join(clientTypes, ", "), value.Value)
		}
		return nil
	case flag == nil, !slices.Contains([]string{"", kind}, flag.Tag.Get("for")):
		c.ignored = append(c.ignored, name)
		return nil
	case name == commandKey && args != nil:
		nodes = append(nodes, args)
	}
	if err := c.setFrom(s, flag, name, nodes...); err != nil {
		return err
	}
	if kind == OfCommand && slices.ContainsFunc(slices.Concat(s.Command, s.Env), reference.MatchString) {
		c.warn("%s: ${…} is replaced only in url and headers", s.Place(nameKey))
	}
	return nil
}

// pathName returns a name of a client's configuration as one that a path can have, which
// may be empty.
func pathName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	name = strings.TrimLeft(name, "-_")
	return strings.TrimRight(name[:min(len(name), 64)], "-")
}

// didYouMean returns the end of a message about a word that is unknown: the known one that
// is most like it; "" for none.
func didYouMean(word string, known ...string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least && d <= len(k)/3 {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// distance returns how many bytes to insert, delete or replace make b out of a
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
