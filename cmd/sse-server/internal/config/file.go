package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFileBytes bounds the configuration file; a larger one is a mistake.
const maxFileBytes = 1 << 20

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
func (c *Config) readFile(flags []*kong.Flag) error {
	if c.Config == "" {
		return nil
	}
	data, err := readLimited(c.Config, maxFileBytes)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	tree, err := parser.ParseBytes(data, 0)
	var syntax yaml.Error
	switch {
	case errors.As(err, &syntax): // not its whole text, which has an excerpt: that may show a secret
		return c.at(syntax.GetToken().Position.Line, syntax.GetToken().Position.Column, syntax.GetMessage())
	case err != nil:
		return fmt.Errorf("%s: %w", c.Config, err)
	case len(tree.Docs) > 1:
		return fmt.Errorf("%s: want one YAML document", c.Config)
	case len(tree.Docs) == 0 || tree.Docs[0].Body == nil:
		return nil
	}
	if _, comment := tree.Docs[0].Body.(*ast.CommentGroupNode); comment {
		return nil
	}
	flags = slices.DeleteFunc(slices.Clone(flags), func(f *kong.Flag) bool { return f.Tag.Has("only") || f.Name == "config" })
	var servers *ast.MappingValueNode
	err = c.readOptions(&c.Server, flags, tree.Docs[0].Body, func(pair *ast.MappingValueNode) bool {
		if pair.Key.GetToken().Value == serversKey {
			servers = pair
		}
		return servers == pair
	})
	if err != nil || servers == nil || isNull(servers.Value) {
		return err
	}
	return c.readServers(servers)
}

// readLimited reads a file that must not be larger than limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("larger than %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// at returns an error about a place in the file.
func (c *Config) at(line, column int, message string) error {
	return fmt.Errorf("%s:%d:%d: %s", c.Config, line, column, message)
}

// wrong returns an error about a node.
func (c *Config) wrong(node ast.Node, format string, args ...any) error {
	position := node.GetToken().Position
	return c.at(position.Line, position.Column, fmt.Sprintf(format, args...))
}

// readServers adds an entry of the key servers: what c has for all, with the options of
// the entry.
func (c *Config) readServers(node *ast.MappingValueNode) error {
	entries, ok := mappingOf(node.Value)
	if !ok {
		return c.wrong(node.Value, "servers: want a mapping of names to options, such as {docs: {command: [npx, -y, server]}}")
	}
	for _, entry := range entries {
		s := c.Server
		s.Name, s.Command, s.given = entry.Key.GetToken().Value, nil, map[string]string{}
		if slices.Contains(routes, s.Name) {
			return c.wrong(entry.Key, "servers.%s: want another name: /%s is a route of sse-server", s.Name, s.Name)
		}
		model, err := newParser(&s)
		if err != nil {
			return err
		}
		if err := c.readOptions(&s, model.Model.Flags, entry.Value, nil); err != nil {
			return err
		}
		c.Servers = append(c.Servers, &s)
	}
	return nil
}

// readOptions sets the options of s that a mapping has. It leaves the pairs for which
// own returns true.
func (c *Config) readOptions(s *Server, flags []*kong.Flag, node ast.Node, own func(*ast.MappingValueNode) bool) error {
	pairs, ok := mappingOf(node)
	if !ok && !isNull(node) {
		return c.wrong(node, "want a mapping of option names to values")
	}
	for _, pair := range pairs {
		key := pair.Key.GetToken().Value
		if own != nil && own(pair) {
			continue
		}
		i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == key })
		if i < 0 && key != commandKey {
			return c.wrong(pair.Key, "%s", unknownKey(key, s.Name))
		}
		if isNull(pair.Value) || s.given[key] != "" && s.Name == "" {
			continue
		}
		value, err := valueOf(pair.Value)
		if err != nil {
			return c.wrong(pair.Value, "%s: %v", key, err)
		}
		position := pair.Value.GetToken().Position
		place := fmt.Sprintf("%s:%d:%d: %s", c.Config, position.Line, position.Column, key)
		switch list, isList := value.([]any); {
		case key != commandKey:
			if err := s.set(flags[i], value, place); err != nil {
				return err
			}
		case !isList || len(list) == 0:
			return c.wrong(pair.Value, "command: want a list of the program and its arguments, such as [npx, -y, server]")
		case len(s.Command) == 0: // else it is given after --
			for _, word := range list {
				s.Command = append(s.Command, word.(string))
			}
			s.given[commandKey] = place
		}
	}
	return nil
}

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

func isNull(node ast.Node) bool {
	_, null := node.(*ast.NullNode)
	return node == nil || null
}

// mappingOf returns the pairs of a mapping.
func mappingOf(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch node := node.(type) {
	case *ast.MappingNode:
		return node.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{node}, true
	}
	return nil, false
}

// valueOf returns a scalar as string, a sequence as []any of strings, and a mapping as
// map[string]string.
func valueOf(node ast.Node) (any, error) {
	if text, ok := scalarText(node); ok {
		return text, nil
	}
	if pairs, ok := mappingOf(node); ok {
		mapping := map[string]string{}
		for _, pair := range pairs {
			text, ok := scalarText(pair.Value)
			if !ok {
				return nil, errors.New("want plain values in the mapping")
			}
			mapping[pair.Key.GetToken().Value] = text
		}
		return mapping, nil
	}
	sequence, ok := node.(*ast.SequenceNode)
	if !ok {
		return nil, fmt.Errorf("a YAML %s is not supported here", strings.ToLower(node.Type().String()))
	}
	list := []any{}
	for _, entry := range sequence.Values {
		text, ok := scalarText(entry)
		if !ok {
			return nil, errors.New("want plain values in the list")
		}
		list = append(list, text)
	}
	return list, nil
}

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
