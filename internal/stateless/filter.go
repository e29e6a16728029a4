package stateless

import (
	"encoding/json"
	"slices"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Filter is what a subscriptions/listen asks for, or what it gets (MCP 2026-07-28,
// basic/utilities/subscriptions).
type Filter struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

// ReadFilter reads the filter in the params of a subscriptions/listen or of its
// acknowledgement.
func ReadFilter(params json.RawMessage) (f Filter, ok bool) {
	raw, ok := rawjson.Member(params, "notifications")
	return f, ok && raw[0] == '{' && json.Unmarshal(raw, &f) == nil
}

// Params is the inverse of ReadFilter.
func (f Filter) Params() json.RawMessage {
	params, _ := json.Marshal(map[string]Filter{"notifications": f}) // strings always have a JSON form
	return params
}

// ChangingLists returns the lists that may change, as the capabilities in a server's result of
// initialize or server/discover say.
func ChangingLists(result json.RawMessage) Filter {
	changes := func(list string) bool { return mcp.Declares(result, "capabilities", list, "listChanged") }
	return Filter{Tools: changes("tools"), Prompts: changes("prompts"), Resources: changes("resources")}
}

// And returns what both filters have.
func (f Filter) And(g Filter) Filter {
	both := Filter{Tools: f.Tools && g.Tools, Prompts: f.Prompts && g.Prompts, Resources: f.Resources && g.Resources}
	for _, uri := range g.URIs {
		if slices.Contains(f.URIs, uri) {
			both.URIs = append(both.URIs, uri)
		}
	}
	return both
}

// IsEmpty reports whether the filter has nothing.
func (f Filter) IsEmpty() bool { return len(f.Lists()) == 0 && len(f.URIs) == 0 }

// Lists returns the methods of the notifications about lists that the filter has.
func (f Filter) Lists() (methods []string) {
	if f.Tools {
		methods = append(methods, mcp.MethodToolsChanged)
	}
	if f.Prompts {
		methods = append(methods, mcp.MethodPromptsChanged)
	}
	if f.Resources {
		methods = append(methods, mcp.MethodResourcesChanged)
	}
	return methods
}

// URIParams returns the params that name a resource.
func URIParams(uri string) json.RawMessage {
	return rawjson.SetMember(json.RawMessage("{}"), rawjson.Quote(uri), "uri")
}

// Mark returns a notification that names its subscription.
func Mark(method string, params, subscription json.RawMessage) []byte {
	params = objectMember(params)
	meta := rawjson.SetMember(objectMember(params, "_meta"), subscription, mcp.MetaSubscription)
	return jsonrpc.NewNotification(method, rawjson.SetMember(params, meta, "_meta"))
}

// Unmark returns a notification without the name of its subscription.
func Unmark(m *jsonrpc.Message) []byte {
	meta, ok := rawjson.Member(m.Params(), "_meta")
	if !ok {
		return m.Raw()
	}
	return rawjson.ReplaceMember(m.Raw(), rawjson.RemoveMember(meta, mcp.MetaSubscription), "params", "_meta")
}
