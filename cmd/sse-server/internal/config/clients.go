package config

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// clientsKey is the key of the file for servers as clients such as Claude Desktop and
// Cursor write them in their own configuration.
const clientsKey = "mcpServers"

// zedKey is the same in the settings of Zed, and argsKey the arguments of a command apart from its name.
const (
	zedKey  = "context_servers"
	argsKey = "args"
)

// opencodeKey is the same in the files of opencode and older ones of VS Code, which say things in ways of their
// own: init reads them.
const opencodeKey = "mcp"

// typesOfClients are what clients call the kinds of servers.
var typesOfClients = []string{"stdio", "http", "sse", "streamable-http", "streamableHttp", "streamable_http"}

// isOfVSCode reports whether the value of the key servers is that of VS Code's mcp.json: its entries say
// their type or the arguments of the command apart.
func (c *Config) isOfVSCode(node ast.Node) bool {
	entries, ok := mappingOf(node)
	if ext := filepath.Ext(c.Config); !ok || ext != ".json" && ext != ".jsonc" {
		return false
	}
	return slices.ContainsFunc(entries, func(entry *ast.MappingValueNode) bool {
		members, _ := mappingOf(entry.Value)
		return slices.ContainsFunc(members, func(m *ast.MappingValueNode) bool {
			return slices.Contains([]string{"type", argsKey}, m.Key.GetToken().Value)
		})
	})
}

// clientNames are the options that clients call otherwise.
var clientNames = map[string]string{"headers": "header", "cwd": "dir", "httpUrl": "url", "serverUrl": "url"}

// urlsOfClients are what clients call the address of a server: most url, Gemini CLI and Qwen Code httpUrl, Windsurf
// serverUrl. The first that an entry has counts.
var urlsOfClients = []string{"url", "httpUrl", "serverUrl"}

// readClientServers adds the entries of a key of a client's file.
func (c *Config) readClientServers(parent string, node ast.Node) error {
	want := parent + `: want a mapping of names to servers, such as {"docs": {"command": "npx", "args": ["-y", "server"]}}`
	before := len(c.Servers)
	err := c.readEntries(node, want, func(entry *ast.MappingValueNode) error { return c.readClientServer(parent, entry) })
	if err == nil && len(c.Servers) == before {
		err = c.at(node.GetToken(), "%s: all servers are disabled", parent)
	}
	return err
}

// refuseForeign returns an error about a file that only init reads.
func (c *Config) refuseForeign(place *token.Token) error {
	return c.at(place, "this is a client's file of another form: sse-server init reads those of opencode and Codex where these have them, and writes a servers.yaml")
}

// warnOfType warns of a type of server that contradicts what an entry has.
func (c *Config) warnOfType(node ast.Node, isCommand bool) {
	has, of := "url", node.GetToken()
	if isCommand {
		has = commandKey
	}
	if slices.Contains(typesOfClients, of.Value) && isCommand != (of.Value == "stdio") {
		c.warn("%v", c.at(of, "type: %s is ignored, as there is a %s", of.Value, has))
	}
}

// readClientServer adds one entry of such a key, unless it is disabled.
func (c *Config) readClientServer(parent string, entry *ast.MappingValueNode) error {
	members, ok := mappingOf(entry.Value)
	if !ok {
		return c.at(entry.Value.GetToken(), "want a mapping with command or url")
	}
	key, names, values := entry.Key.GetToken(), []string{}, map[string]ast.Node{}
	add := func(name string, value ast.Node) {
		if _, isNull := value.(*ast.NullNode); !isNull {
			names, values[name] = append(names, name), value
		}
	}
	for _, member := range members {
		name := member.Key.GetToken().Value
		program, ok := member.Value.(*ast.MappingNode)
		if name != commandKey || !ok {
			add(name, member.Value)
			continue
		}
		for _, part := range program.Values { // the older form of Zed: path, args and env
			add(cmp.Or(map[string]string{"path": commandKey}[part.Key.GetToken().Value], part.Key.GetToken().Value), part.Value)
		}
	}
	isOfURL := slices.ContainsFunc(urlsOfClients, func(name string) bool { return values[name] != nil })
	switch is := func(name, want string) bool { return values[name] != nil && values[name].GetToken().Value == want }; {
	case is("disabled", "true"), is("enabled", "false"):
		return nil
	case values[commandKey] == nil && !isOfURL:
		return c.at(key, "%s.%s: want command or url%s", parent, key.Value, suggestionOf(names, append([]string{commandKey}, urlsOfClients...)))
	}
	s, err := c.addServer(pathName(key.Value), parent, key)
	for _, name := range names {
		if err == nil {
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
	case name == "type":
		c.warnOfType(values[name], kind == OfCommand)
		return nil
	case name == "disabled", name == "enabled", name == argsKey && kind == OfCommand: // the command has it
		return nil
	case slices.ContainsFunc(urlsOfClients[:max(0, slices.Index(urlsOfClients, name))], func(first string) bool { return values[first] != nil }):
		return nil
	case flag == nil, !slices.Contains([]string{"", kind}, flag.Tag.Get("for")):
		c.ignored = append(c.ignored, name)
		return nil
	case name == commandKey && values[argsKey] != nil:
		nodes = append(nodes, values[argsKey])
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
