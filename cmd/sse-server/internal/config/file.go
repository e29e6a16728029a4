package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/tailscale/hujson"
)

// serversKey is the key of the file for several servers.
const serversKey = "servers"

// routes are paths that no server may be called.
var routes = []string{"sse", "healthz", "readyz", "metrics", "connections", "status"}

const (
	// maxNesting bounds how deep the file may nest. The parser takes memory quadratic in the
	// depth: 100 KB of brackets are gigabytes. The lexer does not.
	maxNesting = 64
	// maxPaths bounds the names of all values, each with the keys that lead to it, in bytes: the
	// parser keeps them.
	maxPaths = 128 << 20
)

// level is a value that others may be in.
type level struct {
	column int // of what is in block style; 0: a bracket
	item   bool
	size   int // of its key, in bytes
}

// holds reports whether what comes next may be in the level. In block style that is to the right of
// it, but the items of a list may be at the column of its key.
func (l level) holds(next level) bool {
	return l.column < next.column || l.column == next.column && next.item && !l.item
}

// tooMuch returns the token at which a file takes too much memory to be parsed, and why; nil if it
// does not.
func tooMuch(tokens token.Tokens) (at *token.Token, why string) {
	var open []level
	path, paths := 0, 0
	push := func(l level) {
		open = append(open, l)
		path += l.size
	}
	pop := func() {
		path -= open[len(open)-1].size
		open = open[:len(open)-1]
	}
	for _, t := range tokens {
		inBrackets := len(open) > 0 && open[len(open)-1].column == 0
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			bracket := level{}
			if t.Prev != nil && t.Prev.Type == token.MappingValueType && t.Prev.Prev != nil {
				bracket.size = len(t.Prev.Prev.Value)
			}
			push(bracket)
		case token.SequenceEndType, token.MappingEndType:
			if inBrackets {
				pop()
			}
		case token.MappingValueType, token.CommentType:
		default:
			if inBrackets {
				break
			}
			next := level{max(1, t.Position.Column), t.Type == token.SequenceEntryType, len(t.Value)}
			for len(open) > 0 && !open[len(open)-1].holds(next) {
				pop()
			}
			push(next)
		}
		paths += path
		switch {
		case len(open) > maxNesting:
			return t, fmt.Sprintf("it is nested over %d levels deep", maxNesting)
		case paths > maxPaths:
			return t, "too much is below keys that are too long"
		}
	}
	return nil, ""
}

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
		return fmt.Errorf("config: %w", err)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // editors of Windows write it
	if ext := filepath.Ext(c.Config); ext == ".json" || ext == ".jsonc" {
		if plain, err := hujson.Standardize(bytes.Clone(data)); err == nil { // comments and last commas become spaces
			data = plain
		}
	}
	tokens := lexer.Tokenize(string(data))
	if filepath.Ext(c.Config) == ".toml" && len(tokens) > 0 {
		return c.refuseForeign(tokens[0])
	}
	if place, why := tooMuch(tokens); place != nil {
		return c.at(place, "%s", why)
	}
	tree, err := parser.Parse(tokens, 0)
	if syntax, ok := errors.AsType[yaml.Error](err); ok { // its whole text has an excerpt, which may show a secret
		message, _, _ := strings.Cut(syntax.GetMessage(), `: "`) // as may what it quotes
		if strings.HasPrefix(message, "'@' is a reserved character") {
			message += `: write a word that begins with it in quotes, as in [npx, -y, "@scope/server"]`
		}
		return c.at(syntax.GetToken(), "%s", message)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", c.Config, err)
	case len(tree.Docs) > 1:
		return fmt.Errorf("%s: want one YAML document", c.Config)
	case len(tree.Docs) == 0 || isEmpty(tree.Docs[0].Body): // perhaps it is just being written
		return fmt.Errorf("%s: the file is empty; want options such as command: [npx, -y, server]", c.Config)
	}
	servers, err := c.readOptions(&c.Server, tree.Docs[0].Body)
	for _, key := range []string{serversKey, clientsKey, zedKey} {
		node := servers[key]
		switch {
		case node == nil || err != nil:
		case key == serversKey && !c.isOfVSCode(node):
			err = c.readServers(node)
		default:
			err = c.readClientServers(key, node)
		}
	}
	if len(c.ignored) > 0 {
		slices.Sort(c.ignored)
		c.warn("%s: ignored, as they are the client's own: %s", c.Config, strings.Join(slices.Compact(c.ignored), ", "))
	}
	return err
}

// at returns an error about a place in the file.
func (c *Config) at(place *token.Token, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: %s", c.Config, place.Position.Line, place.Position.Column,
		fmt.Sprintf(format, args...))
}

// readServers adds the entries of the key servers: what c has for all, with the options of
// the entry.
func (c *Config) readServers(node ast.Node) error {
	const want = "servers: want a mapping of names to options, such as {docs: {command: [npx, -y, server]}}"
	return c.readEntries(node, want, func(entry *ast.MappingValueNode) error {
		key := entry.Key.GetToken()
		s, err := c.addServer(key.Value, serversKey, key)
		if err == nil {
			_, err = c.readOptions(s, entry.Value)
		}
		return err
	})
}

// readEntries calls read for each entry of a mapping, which must have some.
func (c *Config) readEntries(node ast.Node, want string, read func(*ast.MappingValueNode) error) error {
	entries, ok := mappingOf(node)
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
	switch i := slices.IndexFunc(c.Servers, func(other *Server) bool { return other.Name == name }); {
	case name == "":
		return nil, s.refuse(nameKey, "want a name with a letter of a-z or a digit")
	case pathName(name) != name || name[0] == '_': // those of clients' files have been made so
		return nil, s.refuse(nameKey, "want at most 64 letters of a-z, digits, _ and -, as it is part of the path, such as %s", cmp.Or(pathName(name), "docs"))
	case slices.Contains(routes, name):
		return nil, s.refuse(nameKey, "want another name: /%s is a route of sse-server", name)
	case i >= 0:
		return nil, s.refuse(nameKey, "want another name: /%s is that of %s", name, c.Servers[i].Place(nameKey))
	}
	newParser(&s, &s)
	c.Servers = append(c.Servers, &s)
	return &s, nil
}

// readOptions sets the options of s that a mapping has, and returns the values of the keys
// servers and mcpServers.
func (c *Config) readOptions(s *Server, node ast.Node) (servers map[string]ast.Node, err error) {
	options, ok := mappingOf(node)
	if !ok {
		return nil, c.at(node.GetToken(), "want a mapping of option names to values")
	}
	servers = map[string]ast.Node{}
	values := map[string]ast.Node{}
	for _, option := range options {
		values[option.Key.GetToken().Value] = option.Value
	}
	foreign, isMapping := values[opencodeKey].(*ast.MappingNode)
	if isMapping && s.Name == "" && values[serversKey] == nil && values[clientsKey] == nil && values[zedKey] == nil {
		return nil, c.refuseForeign(foreign.GetToken())
	}
	isOfClient := s.Name == "" && (values[clientsKey] != nil || values[zedKey] != nil || values[serversKey] != nil && c.isOfVSCode(values[serversKey]))
	for _, option := range options {
		key, value := option.Key.GetToken().Value, option.Value
		flag := s.option(key)
		if flag == nil {
			flag = s.option(clientNames[key])
		}
		nodes := []ast.Node{value}
		if args := values[argsKey]; key == commandKey && args != nil {
			nodes = append(nodes, args)
		}
		switch _, isNull := value.(*ast.NullNode); {
		case s.Name == "" && slices.Contains([]string{serversKey, clientsKey, zedKey}, key):
			servers[key] = value
		case key == argsKey && values[commandKey] != nil: // the command has it
		case key == "type" && slices.Contains(typesOfClients, value.GetToken().Value): // the command or the URL says it
			if command, url := values[commandKey] != nil, values["url"] != nil; command != url {
				c.warnOfType(value, command)
			}
		case flag != nil && (isNull || s.given[flag.Name] != ""):
		case flag != nil:
			err = c.setFrom(s, flag, key, nodes...)
		default:
			err = c.refuseKey(s, option.Key.GetToken(), isOfClient)
		}
		if err != nil {
			return nil, err
		}
	}
	return servers, nil
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

// refuseKey returns an error about a key that is no option of s, or ignores the key:
// a client's own file, which is JSON, has others beside its servers, without - and _.
func (c *Config) refuseKey(s *Server, key *token.Token, beside bool) error {
	switch {
	case beside && filepath.Ext(c.Config) == ".json" && !strings.ContainsAny(key.Value, "-_"):
		c.ignored = append(c.ignored, key.Value)
		return nil
	case s.Name != "":
		return c.at(key, "unknown key %q in servers.%s%s; see sse-server --help-all; options about all servers belong to the top level", key.Value, s.Name, s.suggestion(key.Value))
	}
	return c.at(key, "unknown key %q%s; see sse-server --help-all", key.Value, s.suggestion(key.Value))
}

// setFrom gives an option of s, which the file calls name, the values of nodes.
func (c *Config) setFrom(s *Server, flag *kong.Flag, name string, nodes ...ast.Node) error {
	var texts []string
	for _, node := range nodes {
		more, err := textsOf(node, flag)
		if err != nil {
			return c.at(node.GetToken(), "%s: %v", name, err)
		}
		texts = append(texts, more...)
	}
	return s.set(flag, texts, c.at(nodes[0].GetToken(), "%s", name).Error())
}

// mappingOf returns the pairs of a mapping, or of nothing.
func mappingOf(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch node := node.(type) {
	case *ast.MappingNode:
		return node.Values, true
	case nil, *ast.NullNode:
		return nil, true
	}
	return nil, false
}

// isEmpty reports whether a node has no options, but perhaps comments.
func isEmpty(node ast.Node) bool {
	_, isComment := node.(*ast.CommentGroupNode)
	options, ok := mappingOf(node)
	return isComment || ok && len(options) == 0
}

// textsOf returns the value of an option as texts: a scalar as it is written, the entries
// of a list, or the pairs of a mapping.
func textsOf(node ast.Node, flag *kong.Flag) ([]string, error) {
	texts, values := []string{""}, []ast.Node{node}
	if list, ok := node.(*ast.SequenceNode); ok && flag.IsSlice() {
		texts, values = make([]string, len(list.Values)), list.Values
	}
	if pairs, ok := node.(*ast.MappingNode); ok && flag.Tag.Has("pairs") {
		texts, values = nil, nil
		for _, pair := range pairs.Values {
			texts, values = append(texts, pair.Key.GetToken().Value+flag.Tag.Get("pairs")), append(values, pair.Value)
		}
	}
	for i, value := range values {
		switch n := value.(type) {
		case *ast.LiteralNode:
			texts[i] += n.Value.Value
		case *ast.NullNode:
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
			texts[i] += value.GetToken().Value
		default:
			return nil, fmt.Errorf("a YAML %s is not supported here", strings.ToLower(value.Type().String()))
		}
	}
	return texts, nil
}
