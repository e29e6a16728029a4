package multiplex

import (
	"encoding/json"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxSafeTools bounds how many tools are known to be safe to repeat, and
	// maxSafeBytes their names. Calls of tools beyond these are not repeated.
	maxSafeTools = 4096
	maxSafeBytes = 256 << 10
)

// Repeatable knows which requests to a server may be repeated without changing
// anything: lists, reads, and the tools that the last tools/list annotated so. It is
// safe for concurrent use.
type Repeatable struct {
	mu    sync.RWMutex // guards what follows
	tools map[string]struct{}
	bytes int // of their names
}

// Safe reports whether a request may be repeated: it only reads, or it calls a tool
// that the server has annotated with readOnlyHint or idempotentHint. It trusts the
// annotations.
func (r *Repeatable) Safe(m *jsonrpc.Message) bool {
	if m.Method != mcp.MethodCallTool {
		return readOnly(m.Method)
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.tools) == 0 {
		return false
	}
	at := m.Param("name")
	name, _ := at.Text()
	_, safe := r.tools[name]
	return safe && !at.Ambiguous
}

// learn records the tools in the result of a tools/list. A first page replaces all
// known ones.
func (r *Repeatable) learn(first bool, result json.RawMessage) {
	list, _ := jsonrpc.Member(result, "tools")
	r.mu.Lock()
	defer r.mu.Unlock()
	if first {
		r.tools, r.bytes = nil, 0
	}
	jsonrpc.Each(list, func(tool json.RawMessage) {
		raw, _ := jsonrpc.Member(tool, "name")
		if name, ok := jsonrpc.Text(raw); ok {
			r.setLocked(name, annotated(tool, "readOnlyHint") || annotated(tool, "idempotentHint"))
		}
	})
}

func annotated(tool json.RawMessage, hint string) bool {
	v, _ := jsonrpc.Member(tool, "annotations", hint)
	return string(v) == "true"
}

func (r *Repeatable) setLocked(name string, safe bool) {
	_, known := r.tools[name]
	switch {
	case known && !safe:
		delete(r.tools, name)
		r.bytes -= len(name)
	case !known && safe && len(r.tools) < maxSafeTools && r.bytes+len(name) <= maxSafeBytes:
		if r.tools == nil {
			r.tools = make(map[string]struct{})
		}
		r.tools[name] = struct{}{}
		r.bytes += len(name)
	}
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
