package multiplex

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxSafeTools bounds how many tools are known to be safe to repeat, and
	// maxSafeBytes their names. Calls of tools beyond these are not repeated.
	maxSafeTools = 4096
	maxSafeBytes = 256 << 10
)

// Habits are what the sessions with one server have learned of it: which requests may be
// repeated without changing anything (lists, reads, and the tools that the last tools/list
// annotated so), and which faults the ids of its answers have. It is safe for concurrent
// use.
type Habits struct {
	faults [faults]atomic.Bool // seen

	mu    sync.Mutex // guards what follows
	tools map[string]bool
	bytes int       // of the names of tools
	pages ToolList  // that have come of a list
	list  *ToolList // the last complete one
}

// fault is what can be wrong with the id of an answer.
type fault uint8

const (
	missing fault = iota // there is none: the sessions send one request at a time
	quoted               // it is a string with the number in it
	unknown              // no request has had it, and no answer before had a right one
	stray                // no request has had it, but answers before had right ones
	faults
)

// note records a fault, and reports whether it is the first of its kind.
func (h *Habits) note(f fault) (first bool) { return h.faults[f].CompareAndSwap(false, true) }

// omits reports whether the server has answered without an id.
func (h *Habits) omits() bool { return h.faults[missing].Load() }

// Safe reports whether a request may be repeated: it only reads, or it calls a tool
// that the server has annotated with readOnlyHint or idempotentHint. It trusts the
// annotations.
func (h *Habits) Safe(m *jsonrpc.Message) bool {
	if m.Method != mcp.MethodCallTool {
		return readOnly(m.Method)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.tools) == 0 { // most have none, and need not look for the name
		return false
	}
	at := m.Param("name")
	name, _ := at.Text()
	return h.tools[name] && !at.Ambiguous
}

// learnTools records the tools in the result of a tools/list. A first page replaces all
// known ones. With the last page it returns the size of the list, before that nil.
func (h *Habits) learnTools(first bool, result json.RawMessage) *ToolList {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first || h.tools == nil {
		h.tools, h.bytes, h.pages = make(map[string]bool), 0, ToolList{}
	}
	list, _ := jsonrpc.Member(result, "tools")
	jsonrpc.Each(list, func(tool json.RawMessage) {
		h.pages.add(tool)
		name, ok := jsonrpc.MemberText(tool, "name")
		switch safe := annotated(tool, "readOnlyHint") || annotated(tool, "idempotentHint"); {
		case !ok:
		case h.tools[name] && !safe:
			delete(h.tools, name)
			h.bytes -= len(name)
		case !h.tools[name] && safe && len(h.tools) < maxSafeTools && h.bytes+len(name) <= maxSafeBytes:
			h.tools[name] = true
			h.bytes += len(name)
		}
	})
	if cursor, more := jsonrpc.Member(result, "nextCursor"); more && string(cursor) != "null" {
		return nil
	}
	size := h.pages
	h.list = &size
	return &size
}

func annotated(tool json.RawMessage, hint string) bool {
	v, _ := jsonrpc.Member(tool, "annotations", hint)
	return string(v) == "true"
}

// readOnly reports whether repeating a request changes nothing at the server.
func readOnly(method string) bool {
	switch method {
	case mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodGetPrompt, mcp.MethodListResources, mcp.MethodReadResource,
		mcp.MethodListTemplates, mcp.MethodComplete, mcp.MethodPing:
		return true
	}
	return false
}

// ToolList is the size of a server's list of tools, as far as clients have limits for it.
type ToolList struct {
	Tools                 int `json:"tools"`
	DescriptionCharacters int `json:"descriptionCharacters"`
	LongestName           int `json:"longestName"` // in characters
}

func (l *ToolList) add(tool json.RawMessage) {
	l.Tools++
	l.DescriptionCharacters += characters(tool, "description")
	l.LongestName = max(l.LongestName, characters(tool, "name"))
}

func characters(tool json.RawMessage, member string) int {
	text, _ := jsonrpc.MemberText(tool, member)
	return utf8.RuneCountInString(text)
}

// Tools returns the size of the list that a client last read to its end, nil if none has.
func (h *Habits) Tools() *ToolList {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.list
}
