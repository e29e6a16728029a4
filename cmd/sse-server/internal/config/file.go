package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
	"github.com/tailscale/hujson"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clientfile"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/secretprogram"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/tree"
	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// serversKey is the key of the file for several servers.
const serversKey = "servers"

// entriesKeys are the keys of the file for several servers: ours, which VS Code has too, and those of clients.
var entriesKeys = []string{serversKey, clients.MostKey, clients.ZedKey, clients.OpencodeKey, clients.CodexKey}

// routes are paths that no server may be called.
var routes = []string{"sse", "healthz", "readyz", "metrics", "connections", "status"}

// readFile sets the options of c that the file has and that have not been given yet,
// and adds the servers of the file.
//
// It takes scalars as they are written: YAML would turn the version number 1.10 into 1.1.
func (c *Config) readFile() error {
	if c.Config == "" {
		return nil
	}
	data, _, err := c.read(c.Config)
	if err != nil {
		return c.refuse("config", "%v", err)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // editors of Windows write it
	if c.isJSON() {
		if plain, err := hujson.Standardize(bytes.Clone(data)); err == nil { // comments and last commas become spaces
			data = plain
		}
	}
	if c.isTOML() {
		if data, err = clientfile.FromTOML(data); err != nil {
			return fmt.Errorf("%s: %w", c.Config, err)
		}
	}
	root, err := tree.Parse(data)
	switch wrong, isPlaced := errors.AsType[*tree.Error](err); {
	case isPlaced:
		return c.at(wrong.Place, "%s", wrong.Text)
	case err != nil:
		return fmt.Errorf("%s: %w", c.Config, err)
	case isEmpty(root): // perhaps it is just being written
		return fmt.Errorf("%s: the file is empty; want options such as command: [npx, -y, server]", c.Config)
	}
	if part := clientfile.OfVSCode(root); part != nil && c.isJSON() {
		c.isOfVSCode = true
		if part != root { // its settings
			c.ignoreOthers(root, clients.OpencodeKey)
			root = part
		}
	}
	c.owner = c.ownerOf(root) // its servers have it from there
	servers, err := c.readOptions(&c.Server, root)
	for _, key := range entriesKeys {
		node := servers[key]
		switch {
		case node == nil || err != nil:
		case key == serversKey && !c.isOfVSCode:
			err = c.readServers(node)
		default:
			err = c.readClientServers(key, node)
		}
	}
	if views := servers[viewsKey]; views != nil && err == nil {
		err = c.readViews(views)
	}
	if len(c.ignored) > 0 {
		slices.Sort(c.ignored)
		c.warn("%s: ignored, as they are the client's own: %s", c.Config, strings.Join(slices.Compact(c.ignored), ", "))
	}
	return err
}

// at returns an error about a place in the file.
func (c *Config) at(place *token.Token, format string, args ...any) error {
	if c.isTOML() { // it has been made JSON, which has other places
		return fmt.Errorf("%s: %s", c.Config, fmt.Sprintf(format, args...))
	}
	return fmt.Errorf("%s:%d:%d: %s", c.Config, place.Position.Line, place.Position.Column,
		fmt.Sprintf(format, args...))
}

// readServers adds the entries of the key servers: what c has for all, with the options of
// the entry.
func (c *Config) readServers(node ast.Node) error {
	const want = "servers: want a mapping of names to options, such as {docs: {command: [npx, -y, server]}}"
	return c.readEntries(node, want, func(entry *ast.MappingValueNode) error {
		key := entry.Key.GetToken()
		if _, ok := tree.Members(entry.Value); !ok {
			hint := ""
			if c.option(key.Value) != nil {
				hint = fmt.Sprintf("; if %s is an option of the server above, indent it more", key.Value)
			}
			return c.at(entry.Value.GetToken(), "servers.%s: want options, such as {command: [npx, -y, server]}%s",
				key.Value, hint)
		}
		s, err := c.addServer(key.Value, serversKey, key)
		if err == nil {
			_, err = c.readOptions(s, entry.Value)
		}
		return err
	})
}

// readEntries calls read for each entry of a mapping, which must have some.
func (c *Config) readEntries(node ast.Node, want string, read func(*ast.MappingValueNode) error) error {
	entries, ok := tree.Members(node)
	if !ok || len(entries) == 0 {
		return c.at(node.GetToken(), "%s", want)
	}
	for _, entry := range entries {
		if err := read(entry); err != nil {
			return err
		}
	}
	return nil
}

// addServer adds a server of this name that has what c has for all. In the file it is key,
// below parent.
func (c *Config) addServer(name, parent string, key *token.Token) (*Server, error) {
	s := c.Server
	s.Name, s.Command, s.given = name, nil, map[string]string{nameKey: c.at(key, "%s.%s", parent, key.Value).Error()}
	if err := c.checkPathName(&s); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(c.Servers, func(other *Server) bool { return other.Name == name }); i >= 0 {
		return nil, s.refuse(nameKey, "want another name: /%s is that of %s", name, c.Servers[i].Place(nameKey))
	}
	newParser(&s, &s)
	c.Servers = append(c.Servers, &s)
	return &s, nil
}

// checkPathName returns an error if the name of s cannot be part of a path.
func (c *Config) checkPathName(s *Server) error {
	switch name := s.Name; {
	case name == "":
		return s.refuse(nameKey, "want a name with a letter of a-z or a digit")
	case pathName(name) != name || name[0] == '_': // those of clients' files have been made so
		return s.refuse(nameKey, "want at most 64 letters of a-z, digits, _ and -, as it is part of the path, "+
			"such as %s", cmp.Or(pathName(name), "docs"))
	case slices.Contains(routes, name):
		return s.refuse(nameKey, "want another name: /%s is a route of sse-server", name)
	}
	return nil
}

// readOptions sets the options of s that a mapping has, and returns the values of the keys
// servers, mcpServers and views.
func (c *Config) readOptions(s *Server, node ast.Node) (servers map[string]ast.Node, err error) {
	options, ok := tree.Members(node)
	if !ok {
		return nil, c.at(node.GetToken(),
			"want lines of NAME: VALUE, with a space after the colon, such as command: [npx, -y, server]")
	}
	servers = map[string]ast.Node{}
	values := map[string]ast.Node{}
	for _, option := range options {
		values[option.Key.GetToken().Value] = option.Value
	}
	has := func(key string) bool { return s.Name == "" && values[key] != nil }
	isOfZed := has(clients.ZedKey)
	isOfClient := isOfZed || has(clients.MostKey) || c.isOfVSCode && s.Name == ""
	foreign := "" // the key of a file that has no options of ours
	for _, key := range []string{clients.OpencodeKey, clients.CodexKey} {
		_, isMapping := values[key].(*ast.MappingNode) // others have an mcp of another kind
		if isMapping && s.Name == "" && !isOfClient && !has(serversKey) {
			foreign = key
		}
	}
	_, hasViews := values[viewsKey].(*ast.MappingNode) // those of Zed, for example, are of another kind
	hasViews = (hasViews || isNull(values[viewsKey])) && (has(serversKey) || has(clients.MostKey))
	for _, option := range options {
		key, value := option.Key.GetToken().Value, option.Value
		flag := s.option(key)
		if flag == nil {
			flag = s.option(clientfile.Option(key))
		}
		nodes := []ast.Node{value}
		if args := values["args"]; key == commandKey && args != nil {
			nodes = append(nodes, args)
		}
		switch _, isNull := value.(*ast.NullNode); {
		case key == viewsKey && s.Name == "" && (hasViews || !isOfClient && foreign == ""):
			if !isNull {
				servers[key] = value
			} else {
				c.hasViews = true // as with {}
			}
		case key == foreign, s.Name == "" && slices.Contains([]string{serversKey, clients.MostKey, clients.ZedKey},
			key):
			servers[key] = value
		case foreign != "": // opencode has a command of its own, for example
			c.ignored = append(c.ignored, key)
		case key == "args" && values[commandKey] != nil: // the command has it
		case key == "type" && isType(value): // the command or the URL says it
			if command, url := values[commandKey] != nil, values["url"] != nil; command != url {
				c.warnOfType(value, command)
			}
		case flag != nil && isOfClient && s.Name == "" && flag.Group != nil && flag.Group.Title == selectionGroup:
			c.ignored = append(c.ignored, key) // others have prompts too; ours belong into an entry
		case flag != nil && (isNull || s.given[flag.Name] != ""):
		case flag != nil:
			err = c.setFrom(s, flag, key, nodes...)
		default:
			err = c.refuseKey(s, option.Key.GetToken(), isOfClient, isOfZed)
		}
		if err != nil {
			return nil, err
		}
	}
	return servers, nil
}

func isType(node ast.Node) bool {
	is, _ := clientfile.IsType(node.GetToken().Value)
	return is
}

// option returns the flag of a key of the file; nil if there is none.
func (s *Server) option(key string) *kong.Flag {
	for _, flag := range s.flags {
		if flag.Name == key && key != "config" && !flag.Tag.Has("only") {
			return flag
		}
	}
	return nil
}

// ignoreOthers ignores the members of a mapping but for one.
func (c *Config) ignoreOthers(node ast.Node, but string) {
	members, _ := tree.Members(node)
	for _, member := range members {
		if name := member.Key.GetToken().Value; name != but {
			c.ignored = append(c.ignored, name)
		}
	}
}

// refuseKey returns an error about a key that is no option of s, or ignores the key: a client's own file, which is
// JSON, has others beside its servers. None has a -, as our options have, and only Zed's have a _.
func (c *Config) refuseKey(s *Server, key *token.Token, isOfClient, isOfZed bool) error {
	switch {
	case isOfClient && c.isJSON() && !strings.Contains(key.Value, "-") &&
		(isOfZed || !strings.Contains(key.Value, "_")):
		c.ignored = append(c.ignored, key.Value)
		return nil
	case meantBy(key.Value).isKey:
		return c.at(key, "unknown key %q: %s", key.Value, meantBy(key.Value).place)
	case s.Name != "":
		return c.at(key, "unknown key %q in servers.%s%s; see sse-server --help-all; "+
			"options about all servers belong to the top level", key.Value, s.Name, s.suggestion(key.Value))
	}
	return c.at(key, "unknown key %q%s; see sse-server --help-all", key.Value, s.suggestion(key.Value))
}

// setFrom gives an option of s, which the file calls name, the values of nodes.
func (c *Config) setFrom(s *Server, flag *kong.Flag, name string, nodes ...ast.Node) error {
	var texts []string
	for i, node := range nodes {
		if _, isNull := node.(*ast.NullNode); i > 0 && isNull { // the arguments of a command
			continue
		}
		if text, isText := node.(*ast.StringNode); i > 0 && isText && strings.Contains(text.Value, " ") {
			return c.at(node.GetToken(), "args: want a list, such as [-y, server]")
		}
		more, err := textsOf(node, flag, c.owner == ours)
		if err != nil {
			return c.at(node.GetToken(), "%s: %v", name, err)
		}
		texts = append(texts, more...)
	}
	return s.set(flag, texts, c.at(nodes[0].GetToken(), "%s", name).Error())
}

// isEmpty reports whether a node has no options, but perhaps comments.
func isEmpty(node ast.Node) bool {
	_, isComment := node.(*ast.CommentGroupNode)
	options, ok := tree.Members(node)
	return isComment || ok && len(options) == 0
}

// textsOf returns the value of an option as texts: a scalar as it is written, the entries
// of a list, or the pairs of a mapping. mayRun says that the value of a pair may come from a program.
func textsOf(node ast.Node, flag *kong.Flag, mayRun bool) (texts []string, err error) {
	if pairs, ok := node.(*ast.MappingNode); ok && flag.Tag.Has("pairs") {
		for _, pair := range pairs.Values {
			text, err := valueOf(pair.Value, mayRun)
			if err != nil {
				return nil, err
			}
			texts = append(texts, pair.Key.GetToken().Value+flag.Tag.Get("pairs")+text)
		}
		return texts, nil
	}
	if pairs, ok := node.(*ast.MappingNode); ok && flag.Tag.Has("renames") {
		for _, pair := range pairs.Values {
			text, err := tree.Text(pair.Value)
			if err != nil {
				return nil, err
			}
			texts = append(texts, pair.Key.GetToken().Value+": "+text)
		}
		return texts, nil
	}
	if flag.IsSlice() {
		return tree.Texts(node)
	}
	text, err := tree.Text(node)
	return []string{text}, err
}

// valueOf returns the value of a pair: a text, or what a program prints, as in {exec: [op, read, "op://…"]}. The file
// of a client, which others may have written, starts none.
func valueOf(node ast.Node, mayRun bool) (string, error) {
	members, isMapping := node.(*ast.MappingNode)
	if !isMapping || !mayRun || len(members.Values) != 1 || members.Values[0].Key.GetToken().Value != "exec" {
		return tree.Text(node)
	}
	command, err := tree.Texts(members.Values[0].Value)
	if err != nil {
		return "", err
	}
	secret, err := secretprogram.Read(command)
	if err != nil {
		return "", fmt.Errorf("exec: %w", err)
	}
	return strings.ReplaceAll(secret, "${", "$${"), nil // nothing is replaced in it
}
