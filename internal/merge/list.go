package merge

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/selection"
)

// Kind is a kind of list.
type Kind uint8

// The kinds of lists.
const (
	Tools Kind = iota
	Prompts
	Resources
	Templates
	Kinds // how many there are
)

// kinds has the words of MCP for each kind.
var kinds = [Kinds]struct {
	method, member string
	rules          selection.Kind
}{
	Tools:     {mcp.MethodListTools, "tools", selection.Tools},
	Prompts:   {mcp.MethodListPrompts, "prompts", selection.Prompts},
	Resources: {mcp.MethodListResources, "resources", selection.Resources},
	Templates: {mcp.MethodListTemplates, "resourceTemplates", selection.Resources},
}

// Method returns the method that lists things of the kind.
func (k Kind) Method() string { return kinds[k].method }

// Member returns the member of a result of that method that has the entries.
func (k Kind) Member() string { return kinds[k].member }

// Rules returns the kind of rules that is for such a list.
func (k Kind) Rules() selection.Kind { return kinds[k].rules }

// List is a complete list of one server, read once for all sessions that got the same bytes.
type List struct {
	raw     []json.RawMessage
	entries []entry
}

// entry is what matters of an entry of a list.
type entry struct {
	name        string         // or the URI, or the template; empty: none
	description int            // its characters
	app         string         // the URI of the app of a tool; empty: none
	prefix      string         // of what a template makes
	matches     *regexp.Regexp // of a template; nil: nothing
}

// NewList returns the list that has these entries, in their order. They must be valid JSON, and must not change.
func NewList(kind Kind, entries []json.RawMessage) *List {
	l := &List{entries, make([]entry, len(entries))}
	for i, raw := range entries {
		e := &l.entries[i]
		e.name = selection.NameOf(kinds[kind].rules, raw)
		switch kind {
		case Tools:
			text, _ := rawjson.MemberText(raw, "description")
			e.description = utf8.RuneCountInString(text)
			e.app = appOf(raw)
		case Templates:
			if i < MaxTemplates {
				e.prefix, _, _ = strings.Cut(e.name, "{")
				e.matches = compileTemplate(e.name)
			}
		}
	}
	return l
}

// Len returns how many entries there are.
func (l *List) Len() int { return len(l.raw) }

// appOf returns the URI of the app that shows the results of a tool (MCP Apps, and its older form); empty if there is
// none. Any other URI would lead reads of another member's resource to this one.
func appOf(tool json.RawMessage) string {
	if !bytes.Contains(tool, []byte("resourceUri")) {
		return ""
	}
	uri, ok := rawjson.MemberText(tool, "_meta", "ui", "resourceUri")
	if !ok {
		uri, _ = rawjson.MemberText(tool, "_meta", "ui/resourceUri")
	}
	if !strings.HasPrefix(uri, "ui://") {
		return ""
	}
	return uri
}
