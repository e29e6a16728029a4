// Package tree parses files in YAML or JSON into trees whose values keep their places, for errors that say where.
package tree

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

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

// Error is what is wrong at a place. It quotes no value, which may be a secret.
type Error struct {
	Place *token.Token
	Text  string
}

func (e *Error) Error() string { return e.Text }

// Errorf returns an Error.
func Errorf(place *token.Token, format string, args ...any) error {
	return &Error{place, fmt.Sprintf(format, args...)}
}

// Parse returns the root of a document; nil if it is empty.
func Parse(data []byte) (ast.Node, error) {
	tokens := lexer.Tokenize(string(data))
	if place, why := tooMuch(tokens); place != nil {
		return nil, Errorf(place, "%s", why)
	}
	if place := pathOfWindows(tokens, string(data)); place != nil {
		return nil, Errorf(place, "%s", writeTwo)
	}
	file, err := parser.Parse(tokens, 0)
	if syntax, ok := errors.AsType[yaml.Error](err); ok { // its whole text has an excerpt, which may show a secret
		message, _, _ := strings.Cut(syntax.GetMessage(), `: "`) // as may what it quotes
		return nil, Errorf(syntax.GetToken(), "%s", plainMessage(message, syntax.GetToken()))
	}
	switch {
	case err != nil:
		return nil, err
	case len(file.Docs) > 1:
		return nil, errors.New("want one YAML document")
	case len(file.Docs) == 0:
		return nil, nil
	}
	return file.Docs[0].Body, nil
}

// Members returns the members of a mapping, or of nothing.
func Members(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch node := node.(type) {
	case *ast.MappingNode:
		return node.Values, true
	case nil, *ast.NullNode:
		return nil, true
	}
	return nil, false
}

// Member returns the value of the member of this name; nil if there is none.
func Member(members []*ast.MappingValueNode, name string) ast.Node {
	for _, member := range members {
		if member.Key.GetToken().Value == name {
			return member.Value
		}
	}
	return nil
}

// Text returns a scalar as it is written.
func Text(node ast.Node) (string, error) {
	switch n := node.(type) {
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.NullNode:
		return "", nil
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return node.GetToken().Value, nil
	}
	return "", fmt.Errorf("a YAML %s is not supported here", strings.ToLower(node.Type().String()))
}

// Texts returns the texts of a list, or one.
func Texts(node ast.Node) (texts []string, err error) {
	nodes := []ast.Node{node}
	if list, ok := node.(*ast.SequenceNode); ok {
		nodes = list.Values
	}
	for _, one := range nodes {
		text, err := Text(one)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}
