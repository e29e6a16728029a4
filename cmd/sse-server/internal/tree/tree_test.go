package tree_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/tree"
)

// A fault in YAML or JSON is told with its place, and with what to write.
func TestMistakesAreExplained(t *testing.T) {
	for content, want := range map[string]string{
		"servers:\n\ta:\n":                  "2:1: indent with spaces: this line begins with a tab",
		"command: [x]\n\tenv: {}\n":         "2:1: indent with spaces: this line begins with a tab",
		"\taddr: x\n":                       "1:5: indent with spaces: this line begins with a tab",
		`{"a": {"b": ["-y"`:                 "1:13: its closing ] is missing",
		`{"a": {"b": "x"}`:                  "1:1: its closing } is missing",
		`{"a": ["-y"}`:                      "1:12: a comma or the closing ] is missing before this",
		`{"a": {"b": "x" "c": 1}}`:          "1:17: a comma or the closing } is missing before this",
		"a: [x, y\nb: {}\n":                 "2:1: a comma or the closing ] is missing before this",
		`{"a": {"b": "x"}}}`:                "1:18: this closes nothing: take it out",
		"a: [x]]\n":                         "1:7: this closes nothing: take it out",
		"\"a\": \"x\",\n\"b\": 1\n":         "1:9: write { and } around what has commas between it",
		"a: [x]\n  b: {}\n":                 "2:3: this line is indented differently from the one above",
		"a:\n  b:\n    c: [x]\n   d: {}\n":  "4:4: this line is indented differently from the one above",
		"a: [x] b: {}\n":                    "1:8: write this on a line of its own",
		"a: {b: ${env:X}}\n":                "1:9: write a value with ${…} in it in quotes, as in \"${NAME}\"",
		"a: {b: ${X}, c: d}\n":              "1:9: write a value with ${…} in it in quotes",
		"a: [npx, -y, @s/x]\n":              `1:14: write a word that begins with '@' in quotes, as in [npx, -y, "@scope/server"]`,
		"a: `x`\n":                          "1:4: write a word that begins with '`' in quotes",
		"a: %x\n":                           "1:4: write a word that begins with '%' in quotes",
		"a: x: y\n":                         "1:4: write a value with a colon in it in quotes",
		"a: \"x\n":                          "1:4: its closing quote is missing",
		"a: 'x\n":                           "1:4: its closing quote is missing",
		"a: >x\n":                           "1:4: write the text below on lines of its own, indented",
		`a: ["C:\Users\me\x.exe"]` + "\n":   `1:5: in double quotes write \\ for each \, or in YAML use single quotes`,
		`a: "C:\Users\me\x"` + "\n":         `1:4: in double quotes write \\ for each \, or in YAML use single quotes`,
		`a: "C:\tools\new\x.exe"` + "\n":    `1:4: in double quotes write \\ for each \, or in YAML use single quotes`,
		`a: "C:\dir\x.exe"` + "\n":          `1:8: in double quotes write \\ for each \, or in YAML use single quotes`,
		`a: "\\server\xyz"` + "\n":          `1:4: in double quotes write \\ for each \, or in YAML use single quotes`,
		`{"a": "C:\new\run.cmd", "b": "c"}`: `1:7: in double quotes write \\ for each \, or in YAML use single quotes`,
	} {
		_, err := tree.Parse([]byte(content))
		wrong, isPlaced := errors.AsType[*tree.Error](err)
		if !isPlaced {
			t.Errorf("%q: got the error %v, want %s", content, err, want)
			continue
		}
		if got := fmt.Sprintf("%d:%d: %s", wrong.Place.Position.Line, wrong.Place.Position.Column, wrong.Text); !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %s, want %s", content, got, want)
		}
	}
	for _, content := range []string{
		`a: "C:\\tools\\x.exe"`, `a: 'C:\Users\x.exe'`, `a: C:\Users\x.exe`, `a: "C:\nD:\nE"`, `a: "\x41\u0041\U00000041\t\"\\"`, `{"a": "C:\\Users\\x.exe", "b": "\\\\server\\x"}`,
		`a: "${X}"`, `a: {b: "${X}"}`, "a: ${X}", "a: b:c", "a: |\n  x\n",
	} {
		if _, err := tree.Parse([]byte(content)); err != nil {
			t.Errorf("%q: got the error %v", content, err)
		}
	}
}
