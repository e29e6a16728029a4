package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFileBytes bounds the configuration file; a larger one is a mistake.
const maxFileBytes = 1 << 20

const (
	// commandKey is the one option that is not a flag: the command is after "--".
	commandKey = "command"
	// serversKey is the one key of the file that is not an option.
	serversKey = "servers"
)

// file is a configuration file. It reports its own faults.
type file struct {
	*Config
	top     section
	servers []section
	several bool // there is a key servers
}

// section is the top level of the file, or an entry of servers.
type section struct {
	name    string // of the server
	from    origin // of the entry
	under   string // what messages put before the keys, such as "servers.docs."
	values  map[string]input
	unknown bool // it has unknown keys
}

// readFile reads the YAML file at path, "" for none.
func (c *Config) readFile(path string) *file {
	f := &file{Config: c, top: section{values: map[string]input{}}}
	if path == "" {
		return f
	}
	data, err := readLimited(path, maxFileBytes)
	if err != nil {
		c.report.add(0, "config: %v", err)
		return f
	}
	tree, err := parser.ParseBytes(data, 0)
	switch {
	case err != nil:
		f.reportSyntax(err)
	case len(tree.Docs) > 1:
		c.report.add(0, "%s: want one YAML document", path)
	case len(tree.Docs) == 1:
		f.readTop(tree.Docs[0].Body)
	}
	return f
}

// readLimited reads a file that must not be larger than limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("read %s: larger than %d bytes", path, limit)
	}
	return data, nil
}

// reportSyntax reports a syntax error without the excerpt of the file that the
// parser puts below it: the excerpt may have a secret.
func (f *file) reportSyntax(err error) {
	var syntax yaml.Error
	if !errors.As(err, &syntax) || syntax.GetToken() == nil || syntax.GetToken().Position == nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		f.report.add(0, "%s: %s", f.path, first)
		return
	}
	at, message := syntax.GetToken().Position, syntax.GetMessage()
	if strings.Contains(message, "\t") || strings.Contains(message, "tab character") {
		message = "a tab in the indentation: indent with spaces"
	}
	f.report.add(at.Line, "%s:%d:%d: %s", f.path, at.Line, at.Column, message)
}

// place returns the origin of what a key names.
func (f *file) place(node *ast.MappingValueNode, under string) origin {
	key := node.Key.GetToken()
	return origin{name: fmt.Sprintf("%s:%d: %s", f.path, key.Position.Line, under+key.Value), line: key.Position.Line}
}

// readTop reads the top level.
func (f *file) readTop(body ast.Node) {
	if _, comment := body.(*ast.CommentGroupNode); comment || isNull(body) {
		return
	}
	pairs, ok := mappingOf(body)
	if !ok {
		f.report.add(0, "%s: want a mapping of option names to values", f.path)
		return
	}
	isServers := func(pair *ast.MappingValueNode) bool { return pair.Key.GetToken().Value == serversKey }
	f.several = slices.ContainsFunc(pairs, isServers)
	for _, pair := range pairs {
		if isServers(pair) {
			f.readServers(pair)
		} else {
			f.readOption(&f.top, pair)
		}
	}
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

// readServers reads the entries of servers.
func (f *file) readServers(node *ast.MappingValueNode) {
	if isNull(node.Value) {
		return
	}
	from := f.place(node, "")
	pairs, ok := mappingOf(node.Value)
	if !ok || len(pairs) == 0 {
		f.report.add(from.line, "%s: want %s", from.name, serversForm)
	}
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		s := section{name: name, from: f.place(pair, serversKey+"."), under: serversKey + "." + name + ".", values: map[string]input{}}
		options, ok := mappingOf(pair.Value)
		if !ok && !isNull(pair.Value) {
			f.report.add(s.from.line, "%s: want a mapping of option names to values", s.from.name)
			continue
		}
		for _, option := range options {
			f.readOption(&s, option)
		}
		f.servers = append(f.servers, s)
	}
}

// readOption reads one option, or the command, of a section.
func (f *file) readOption(s *section, node *ast.MappingValueNode) {
	key, from := node.Key.GetToken().Value, f.place(node, s.under)
	if !slices.Contains(f.keys(), key) {
		s.unknown = true
		f.report.add(from.line, "%s:%d: unknown key %q%s", f.path, from.line, s.under+key, f.hint(s, node))
		return
	}
	if isNull(node.Value) {
		return
	}
	value, err := convert(node.Value)
	if err != nil {
		f.report.add(from.line, "%s: %v", from.name, err)
		return
	}
	value.from = from
	s.values[key] = value
}

// convert returns a node with its scalars as text.
func convert(node ast.Node) (input, error) {
	if text, ok := scalarText(node); ok {
		return input{texts: []string{text}}, nil
	}
	var in input
	if pairs, ok := mappingOf(node); ok {
		in.kind = mapping
		for _, pair := range pairs {
			text, ok := scalarText(pair.Value)
			in.nested = in.nested || !ok
			in.pairs = append(in.pairs, [2]string{pair.Key.GetToken().Value, text})
		}
	} else if list, ok := node.(*ast.SequenceNode); ok {
		in.kind = sequence
		for _, entry := range list.Values {
			text, ok := scalarText(entry)
			in.nested = in.nested || !ok
			in.texts = append(in.texts, text)
		}
	} else {
		return in, fmt.Errorf("a YAML %s is not supported here", strings.ToLower(node.Type().String()))
	}
	var decoded any
	err := yaml.NodeToValue(node, &decoded)
	if err == nil {
		in.json, err = json.Marshal(decoded)
	}
	if err != nil { // its text may show the value
		return in, errors.New("the value has no JSON form")
	}
	return in, nil
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
	default:
		return "", false
	}
}

// plain are texts that YAML takes without quotes as what they are.
var plain = regexp.MustCompile(`^[\w./](?:[\w./+-]|[ :][\w./+-])*$`)

// yamlText writes a text as a YAML scalar.
func yamlText(s string) string {
	if plain.MatchString(s) && !strings.EqualFold(s, "null") {
		return s
	}
	return strconv.Quote(s)
}

// yamlList writes a list on one line.
func yamlList(values []string) string {
	out := make([]string, len(values))
	for i, s := range values {
		out[i] = yamlText(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}
