package compose_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// saying returns a member that answers initialize with those capabilities and instructions.
func saying(capabilities, instructions string) *fake {
	f := newFake()
	f.says = fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":%s,"instructions":%s}`, capabilities, rawjson.Quote(instructions))
	return f
}

// declaration is what a view answers to initialize.
type declaration struct {
	ServerInfo, Capabilities json.RawMessage
	Instructions             string
}

// declared returns what a view of those members answers.
func declared(t *testing.T, opts compose.Options, of []compose.Member) (d declaration) {
	t.Helper()
	v, err := compose.New(of, opts)
	ssetest.Must(t, err)
	inBubble(t, func(t *testing.T) {
		var answer struct{ Result *declaration }
		answer.Result = &d
		ssetest.Must(t, json.Unmarshal([]byte(strings.Join(open(t, v).take(), "\n")), &answer))
	})
	return d
}

// A view says its own name, title and version.
func TestDeclaredNames(t *testing.T) {
	of := members("a", saying(`{}`, ""), "b", saying(`{}`, ""))
	d := declared(t, compose.Options{Name: "team", Title: "The team's tools", Version: "7"}, of)
	ssetest.Want(t, "names", string(d.ServerInfo), `{"name":"team","title":"The team's tools","version":"7"}`)
}

// The instructions of several members stand under their names, in their order. Each has 2 KiB at most, cut between
// characters, and all together 8 KiB: the first one that is too much ends them.
func TestDeclaredInstructions(t *testing.T) {
	const each = 2048
	part := func(name, text string) string { return "# " + name + "\n\n" + text }
	full := strings.Repeat("x", each)
	for name, tc := range map[string]struct{ texts, want []string }{
		"in their order":         {[]string{"First.", "", "Third."}, []string{part("a", "First."), part("c", "Third.")}},
		"none":                   {[]string{"", ""}, nil},
		"one that is too long":   {[]string{full + "y", "short"}, []string{part("a", full), part("b", "short")}},
		"cut in a character":     {[]string{full[1:] + "é", ""}, []string{part("a", full[1:])}},
		"cut behind a character": {[]string{full[2:] + "é!", ""}, []string{part("a", full[2:]+"é")}},
		"too much together":      {[]string{full, full, full, full, "short"}, []string{part("a", full), part("b", full), part("c", full)}},
	} {
		var of []compose.Member
		for i, text := range tc.texts {
			of = append(of, members(string(rune('a'+i)), saying(`{}`, text))...)
		}
		ssetest.Want(t, name, declared(t, compose.Options{}, of).Instructions, strings.Join(tc.want, "\n\n"))
	}
}

// A view can do what one of its members can. Of two extensions with one name that of the first member counts. What none
// has is not declared.
func TestDeclaredCapabilities(t *testing.T) {
	d := declared(t, compose.Options{}, members(
		"a", saying(`{"prompts":{}, "extensions":{"x":{"n":1}}, "experimental":{"p":{"n":1}}}`, ""),
		"b", saying(`{"resources":{"subscribe":true}, "completions":{}, "extensions":{"x":{"n":2},"y":{}}, "experimental":{"p":{"n":2},"q":{}}}`, ""),
	))
	ssetest.Want(t, "capabilities", string(d.Capabilities), `{"completions":{},"experimental":{"p":{"n":1},"q":{}},`+
		`"extensions":{"x":{"n":1},"y":{}},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}}`)
}
