package bridge

import (
	"encoding/json"
	"strings"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Selection is what clients may see of a server, and use.
type Selection struct {
	Rules *selection.Rules
	Hints *selection.Hints // of the tools that the server has listed to any client; Rules may need them
	Watch *selection.Watch // finds the Rules that meet nothing

	narrow *selection.Narrowing // of one client; nil: none
}

// narrowed returns the selection, nil for everything, as a client has narrowed it.
func (s *Selection) narrowed(by *selection.Narrowing) *Selection {
	narrowed := Selection{narrow: by}
	if s != nil {
		narrowed.Rules, narrowed.Hints, narrowed.Watch = s.Rules, s.Hints, s.Watch
	}
	return &narrowed
}

// named is where a message names something that rules may leave out.
type named struct {
	kind     selection.Kind
	param    []string // below params
	optional bool     // a message without it names something else
	code     int      // of the error of a name that the server does not have
}

// namedBy are the requests that name something. Lists are apart: their results are filtered.
var namedBy = map[string][]named{
	mcp.MethodCallTool:     {{selection.Tools, []string{"name"}, false, jsonrpc.CodeInvalidParams}},
	mcp.MethodGetPrompt:    {{selection.Prompts, []string{"name"}, false, jsonrpc.CodeInvalidParams}},
	mcp.MethodReadResource: {{selection.Resources, []string{"uri"}, false, mcp.CodeResourceNotFound}},
	mcp.MethodSubscribe:    {{selection.Resources, []string{"uri"}, false, mcp.CodeResourceNotFound}},
	mcp.MethodComplete: {
		{selection.Prompts, []string{"ref", "name"}, true, jsonrpc.CodeInvalidParams},
		{selection.Resources, []string{"ref", "uri"}, true, jsonrpc.CodeInvalidParams},
	},
}

// lets reports whether a notification may pass. One of MCP names nothing, but a server may take a call without an id.
func (s *Selection) lets(m *jsonrpc.Message) bool {
	e, _ := s.refusal(m)
	return e == nil
}

// filter returns the result of a list without what is left out.
func (s *Selection) filter(method string, result json.RawMessage) json.RawMessage {
	if method == mcp.MethodListTools && s.Rules.NeedsHints() {
		s.Hints.NotePage(result)
	}
	result = s.Rules.FilterPage(method, result)
	if method != mcp.MethodListTools || s.narrow == nil {
		return result
	}
	result = s.narrow.FilterPage(method, result)
	if _, ok := rawjson.Member(result, "cacheScope"); ok { // a cache for several clients must not have it
		result = rawjson.ReplaceMember(result, json.RawMessage(`"private"`), "cacheScope")
	}
	return result
}

// noteHints notes the hints of the tools that memory has, the closest first. Hints that are known stay: lists of the
// server itself are newer.
func (s *Selection) noteHints(of handshake.Recalled) {
	for _, answers := range []*remember.Answers{of.Exact, of.Earlier, of.Nearest} {
		if answers == nil {
			continue
		}
		tools, _ := answers.Items(mcp.MethodListTools, "tools")
		for _, tool := range tools {
			s.Hints.NoteOld(tool)
		}
	}
}

// refusal returns the error for a message that names something which is left out, or that may name it to a parser
// that reads it in another way. It is nil for any other message. certain says that the server's lists cannot change
// it.
func (s *Selection) refusal(m *jsonrpc.Message) (e *jsonrpc.Error, certain bool) {
	switch {
	case !m.Certain():
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"a member's name differs from one of JSON-RPC only in case"), true
	// Its URIs would pass. The transports translate it.
	case m.Method == mcp.MethodListen && s.Rules.Restricts(selection.Resources):
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
			"subscriptions/listen is not available on this transport: use resources/subscribe"), true
	}
	for _, n := range namedBy[m.Method] {
		if isNarrow := n.kind == selection.Tools && s.narrow != nil; !isNarrow && !s.Rules.Restricts(n.kind) {
			continue
		}
		if e, certain := s.refusalOf(n, m.Param(n.param...)); e != nil {
			return e, certain
		}
	}
	return nil, true
}

// refusalOf returns the error for what a message names at a place.
func (s *Selection) refusalOf(n named, at jsonrpc.Place) (e *jsonrpc.Error, certain bool) {
	name, isText := at.Text()
	switch {
	case at.Ambiguous:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s is there twice, or once more in other case",
			n.place()), true
	case at.Value == nil && n.optional:
		return nil, true
	case !isText:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s must be a string", n.place()), true
	}
	var verdict selection.Verdict
	isNarrowed := n.kind == selection.Tools && !s.narrow.Allows(name)
	certain = true
	switch {
	case isNarrowed:
	case n.kind == selection.Tools:
		verdict, certain = s.Rules.Call(name, s.Hints)
	default:
		verdict = s.Rules.Name(n.kind, name)
	}
	if verdict.Allowed() && !isNarrowed {
		return nil, true
	}
	// The error does not tell that there is such a thing.
	return jsonrpc.Errorf(n.code, "unknown %s %q", kindNames[n.kind], clip.Long(name)), certain
}

// kindNames are the kinds as errors have them.
var kindNames = map[selection.Kind]string{
	selection.Tools: "tool", selection.Prompts: "prompt", selection.Resources: "resource",
}

// place returns what errors call the place.
func (n named) place() string { return "params." + strings.Join(n.param, ".") }
