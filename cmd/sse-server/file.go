package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFileBytes bounds the configuration file; a larger one is a mistake.
const maxFileBytes = 1 << 20

type valueKind int

const (
	scalarValue valueKind = iota
	listValue
	mappingValue
)

// fileValue is the value of one option with its scalars as they stand in the
// file: decoding them would turn the version number 1.10 into 1.1.
type fileValue struct {
	kind valueKind
	// key names the value: that of the option, in a server after its name.
	key string
	// line is the line of the file, 0 for a value from elsewhere.
	line  int
	text  string      // of a scalar
	list  []string    // of a list of scalars
	pairs [][2]string // of a mapping of scalars
	// nested says that a list or mapping holds others, so that list or pairs is
	// not all of it.
	nested bool
	// json is the value as JSON, for a list or a mapping.
	json []byte
}

// String is the value for a message.
func (v fileValue) String() string {
	if v.kind == scalarValue {
		return v.text
	}
	return string(v.json)
}

// configFile is a parsed configuration file.
type configFile struct {
	path    string
	values  map[string]fileValue
	servers []fileServer
	several bool // there is a key servers
}

// at is the place of a value.
func (f *configFile) at(value fileValue) string {
	return fmt.Sprintf("%s:%d: %s", f.path, value.line, value.key)
}

// readConfigFile reads the YAML file at path. All its faults are returned, each
// with the line.
func readConfigFile(path string, known fileKeys) (configFile, []string) {
	file := configFile{path: path, values: map[string]fileValue{}}
	data, err := readLimited(path, maxFileBytes)
	if err != nil {
		return file, []string{fmt.Sprintf("config: %v", err)}
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return file, []string{syntaxFault(path, err)}
	}
	if len(tree.Docs) > 1 {
		return file, []string{path + ": want one YAML document"}
	}
	var faults []string
	for _, doc := range tree.Docs {
		faults = append(faults, file.collect(doc.Body, known)...)
	}
	return file, faults
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

// syntaxFault names the place of a syntax error without the excerpt of the
// file that the parser puts below it: it may hold a secret.
func syntaxFault(path string, err error) string {
	var syntax yaml.Error
	if errors.As(err, &syntax) && syntax.GetToken() != nil && syntax.GetToken().Position != nil {
		at := syntax.GetToken().Position
		message := syntax.GetMessage()
		if strings.Contains(message, "\t") || strings.Contains(message, "tab character") {
			message = "a tab in the indentation: indent with spaces"
		}
		return fmt.Sprintf("%s:%d:%d: %s", path, at.Line, at.Column, message)
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return path + ": " + first
}

// sortByLine puts the faults of the file at path in the order of its lines, after
// all others, which keep theirs.
func sortByLine(faults []string, path string) {
	line := func(fault string) int {
		rest, found := strings.CutPrefix(fault, path+":")
		digits, _, _ := strings.Cut(rest, ":")
		number, err := strconv.Atoi(digits)
		if path == "" || !found || err != nil {
			return 0
		}
		return number
	}
	slices.SortStableFunc(faults, func(a, b string) int { return cmp.Compare(line(a), line(b)) })
}

// collect takes the top-level mapping apart.
func (f *configFile) collect(body ast.Node, known fileKeys) []string {
	switch body.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return nil
	}
	pairs, ok := mappingOf(body)
	if !ok {
		return []string{f.path + ": want a mapping of option names to values"}
	}
	f.several = slices.ContainsFunc(pairs, func(pair *ast.MappingValueNode) bool { return pair.Key.GetToken().Value == serversKey })
	var faults []string
	for _, pair := range pairs {
		if pair.Key.GetToken().Value == serversKey {
			faults = append(faults, f.collectServers(pair, known)...)
			continue
		}
		faults = append(faults, f.collectPair(pair, "", known, f.values)...)
	}
	return faults
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

// collectPair puts one option of a mapping, whose keys have the prefix under in
// messages, into values.
func (f *configFile) collectPair(node *ast.MappingValueNode, under string, known fileKeys, values map[string]fileValue) []string {
	line := node.Key.GetToken().Position.Line
	key := node.Key.GetToken().Value
	if !known.has(key) {
		return []string{fmt.Sprintf("%s:%d: unknown key %q%s", f.path, line, under+key, known.hint(node, under, f.several))}
	}
	if _, null := node.Value.(*ast.NullNode); null {
		return nil
	}
	value, err := convert(node.Value)
	if err != nil {
		return []string{fmt.Sprintf("%s:%d: %s: %v", f.path, line, under+key, err)}
	}
	value.key, value.line = under+key, line
	values[key] = value
	return nil
}

// convert keeps a node's scalars as text.
func convert(node ast.Node) (fileValue, error) {
	if text, ok := scalarText(node); ok {
		return fileValue{kind: scalarValue, text: text}, nil
	}
	var value fileValue
	switch n := node.(type) {
	case *ast.SequenceNode:
		value.kind = listValue
		for _, entry := range n.Values {
			text, ok := scalarText(entry)
			value.nested = value.nested || !ok
			value.list = append(value.list, text)
		}
	case *ast.MappingNode:
		value.kind = mappingValue
		value.addPairs(n.Values)
	case *ast.MappingValueNode:
		value.kind = mappingValue
		value.addPairs([]*ast.MappingValueNode{n})
	default:
		return fileValue{}, fmt.Errorf("a YAML %s is not supported here", strings.ToLower(node.Type().String()))
	}
	var decoded any
	if err := yaml.NodeToValue(node, &decoded); err != nil {
		return fileValue{}, errors.New("the value cannot be read")
	}
	var err error
	if value.json, err = json.Marshal(decoded); err != nil {
		return fileValue{}, errors.New("the value has no JSON form")
	}
	return value, nil
}

func (v *fileValue) addPairs(nodes []*ast.MappingValueNode) {
	for _, pair := range nodes {
		text, ok := scalarText(pair.Value)
		v.nested = v.nested || !ok
		v.pairs = append(v.pairs, [2]string{pair.Key.GetToken().Value, text})
	}
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

// yamlText writes s as a YAML scalar: plain where that is safe, else quoted.
func yamlText(s string) string {
	plain := s != "" && !strings.EqualFold(s, "null") && !strings.ContainsAny(s, "~#{}[]&*!|>'\"%@`,\t\n\\") &&
		!strings.HasPrefix(s, "-") && !strings.HasPrefix(s, "?") && !strings.HasPrefix(s, ":") &&
		!strings.Contains(s, ": ") && !strings.HasSuffix(s, ":") && strings.TrimSpace(s) == s
	if plain {
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
