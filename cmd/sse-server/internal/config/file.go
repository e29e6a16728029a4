package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// serversKey is the key of the file for several servers.
const serversKey = "servers"

// routes are paths that no server may be called.
var routes = []string{"sse", "healthz", "readyz", "metrics", "connections"}

// readFile sets the options of c that the file has and that have not been given yet,
// and adds the servers of the file.
//
// It takes scalars as they are written: YAML would turn the version number 1.10 into 1.1.
func (c *Config) readFile() error {
	if c.Config == "" {
		return nil
	}
	data, err := os.ReadFile(c.Config)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	tree, err := parser.ParseBytes(data, 0)
	if syntax, ok := errors.AsType[yaml.Error](err); ok { // its whole text has an excerpt, which may show a secret
		return c.at(syntax.GetToken(), "%s", syntax.GetMessage())
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", c.Config, err)
	case len(tree.Docs) != 1:
		return fmt.Errorf("%s: want one YAML document", c.Config)
	}
	servers, err := c.readOptions(&c.Server, tree.Docs[0].Body)
	if err != nil || servers == nil {
		return err
	}
	return c.readServers(servers)
}

// at returns an error about a place in the file.
func (c *Config) at(place *token.Token, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: %s", c.Config, place.Position.Line, place.Position.Column, fmt.Sprintf(format, args...))
}

// readServers adds the entries of the key servers: what c has for all, with the options of
// the entry.
func (c *Config) readServers(node ast.Node) error {
	entries, ok := mappingOf(node)
	if !ok || len(entries) == 0 {
		return c.at(node.GetToken(), "servers: want a mapping of names to options, such as {docs: {command: [npx, -y, server]}}")
	}
	for _, entry := range entries {
		s, name := c.Server, entry.Key.GetToken()
		s.Name, s.Command, s.given = name.Value, nil, map[string]string{nameKey: c.at(name, "servers.%s", name.Value).Error()}
		if slices.Contains(routes, s.Name) {
			return s.refuse(nameKey, "want another name: /%s is a route of sse-server", s.Name)
		}
		if _, err := newParser(&s, &s); err != nil {
			return err
		}
		if _, err := c.readOptions(&s, entry.Value); err != nil {
			return err
		}
		c.Servers = append(c.Servers, &s)
	}
	return nil
}

// readOptions sets the options of s that a mapping has, and returns the value of the key
// servers, nil if there is none.
func (c *Config) readOptions(s *Server, node ast.Node) (servers ast.Node, err error) {
	options, ok := mappingOf(node)
	if !ok {
		return nil, c.at(node.GetToken(), "want a mapping of option names to values")
	}
	for _, option := range options {
		key, value := option.Key.GetToken().Value, option.Value
		i := slices.IndexFunc(s.flags, func(f *kong.Flag) bool { return f.Name == key && key != "config" && !f.Tag.Has("only") })
		_, isNull := value.(*ast.NullNode)
		switch {
		case isNull && (i >= 0 || key == serversKey), i >= 0 && s.given[key] != "":
			continue
		case key == serversKey && s.Name == "":
			servers = value
			continue
		case replacement(key) != "":
			return nil, c.at(option.Key.GetToken(), "%s is gone: %s", key, replacement(key))
		case i < 0 && s.Name != "":
			return nil, c.at(option.Key.GetToken(), "unknown key %q in servers.%s; options about all servers belong to the top level", key, s.Name)
		case i < 0:
			return nil, c.at(option.Key.GetToken(), "unknown key %q; see sse-server --help", key)
		}
		flag := s.flags[i]
		texts, err := textsOf(value, flag)
		if err != nil {
			return nil, c.at(value.GetToken(), "%s: %v", key, err)
		}
		if err := s.set(flag, texts, c.at(value.GetToken(), "%s", key).Error()); err != nil {
			return nil, err
		}
	}
	return servers, nil
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
