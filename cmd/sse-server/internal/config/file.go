package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The keys of the file that are not flags.
const (
	commandKey = "command"
	serversKey = "servers"
)

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
	case len(tree.Docs) > 1:
		return fmt.Errorf("%s: want one YAML document", c.Config)
	case len(tree.Docs) == 0:
		return nil
	}
	if err := c.readOptions(&c.Server, tree.Docs[0].Body); err != nil {
		return err
	}
	all, _ := mappingOf(tree.Docs[0].Body)
	for _, pair := range all {
		if pair.Key.GetToken().Value == serversKey {
			return c.readServers(pair.Value)
		}
	}
	return nil
}

// at returns an error about a place in the file.
func (c *Config) at(place *token.Token, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: %s", c.Config, place.Position.Line, place.Position.Column, fmt.Sprintf(format, args...))
}

// readServers adds the entries of the key servers: what c has for all, with the options of
// the entry.
func (c *Config) readServers(node ast.Node) error {
	entries, ok := mappingOf(node)
	if !ok {
		return c.at(node.GetToken(), "servers: want a mapping of names to options, such as {docs: {command: [npx, -y, server]}}")
	}
	for _, entry := range entries {
		s := c.Server
		s.Name, s.Command, s.given = entry.Key.GetToken().Value, nil, map[string]string{}
		if slices.Contains(routes, s.Name) {
			return c.at(entry.Key.GetToken(), "servers.%s: want another name: /%s is a route of sse-server", s.Name, s.Name)
		}
		if _, err := newParser(&s, &s); err != nil {
			return err
		}
		if err := c.readOptions(&s, entry.Value); err != nil {
			return err
		}
		c.Servers = append(c.Servers, &s)
	}
	return nil
}

// readOptions sets the options of s that a mapping has.
func (c *Config) readOptions(s *Server, node ast.Node) error {
	options, ok := mappingOf(node)
	if !ok {
		return c.at(node.GetToken(), "want a mapping of option names to values")
	}
	for _, option := range options {
		key, value := option.Key.GetToken().Value, option.Value
		i := slices.IndexFunc(s.flags, func(f *kong.Flag) bool { return f.Name == key && isKey(f) })
		switch _, isNull := value.(*ast.NullNode); {
		case key == serversKey && s.Name == "":
			continue
		case i < 0 && key != commandKey:
			return c.at(option.Key.GetToken(), "%s", unknownKey(key, s.Name))
		case isNull || s.given[key] != "":
			continue
		}
		separator := ""
		if i >= 0 {
			separator = s.flags[i].Tag.Get("pairs")
		}
		texts, err := textsOf(value, separator)
		if err != nil {
			return c.at(value.GetToken(), "%s: %v", key, err)
		}
		place := c.at(value.GetToken(), "%s", key).Error()
		switch _, isList := value.(*ast.SequenceNode); {
		case key != commandKey && isList && s.flags[i].Target.Kind() != reflect.Slice:
			return fmt.Errorf("%s: want one value", place)
		case key != commandKey:
			if err := s.set(s.flags[i], texts, place); err != nil {
				return err
			}
		case !isList || len(texts) == 0:
			return c.at(value.GetToken(), "command: want a list of the program and its arguments, such as [npx, -y, server]")
		case len(s.Command) == 0: // else it is given after --
			s.Command, s.given[commandKey] = texts, place
		}
	}
	return nil
}

// isKey reports whether an option can be a key of the file.
func isKey(flag *kong.Flag) bool { return !flag.Tag.Has("only") && flag.Name != "config" }

// unknownKey returns what to say of a key that is no option of the section: of the server
// with a name, or of the top level.
func unknownKey(key, server string) string {
	switch {
	case removed[key] != "":
		return fmt.Sprintf("%s is gone: %s", key, removed[key])
	case server != "":
		return fmt.Sprintf("unknown key %q in servers.%s; options about all servers belong to the top level", key, server)
	}
	return fmt.Sprintf("unknown key %q; see sse-server --help", key)
}

// mappingOf returns the pairs of a mapping, or of nothing.
func mappingOf(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch node := node.(type) {
	case *ast.MappingNode:
		return node.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{node}, true
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return nil, true
	}
	return nil, false
}

// textsOf returns a scalar, the entries of a list, or the pairs of a mapping with the
// separator between name and value.
func textsOf(node ast.Node, separator string) ([]string, error) {
	if text, ok := scalarText(node); ok {
		return []string{text}, nil
	}
	var names []string
	var values []ast.Node
	pairs, isMapping := mappingOf(node)
	list, isList := node.(*ast.SequenceNode)
	switch {
	case isMapping && separator != "":
		for _, pair := range pairs {
			names, values = append(names, pair.Key.GetToken().Value+separator), append(values, pair.Value)
		}
	case isList:
		names, values = make([]string, len(list.Values)), list.Values
	default:
		return nil, fmt.Errorf("a YAML %s is not supported here", strings.ToLower(node.Type().String()))
	}
	for i, value := range values {
		text, ok := scalarText(value)
		if !ok {
			return nil, errors.New("want plain values")
		}
		names[i] += text
	}
	return names, nil
}

// scalarText returns a scalar as it is written.
func scalarText(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.NullNode:
		return "", true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return node.GetToken().Value, true
	}
	return "", false
}
