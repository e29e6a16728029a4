package stateless

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/mirror"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxToolPages bounds the pages of a tools/list of the handler.
	maxToolPages = 8
	// maxTools bounds the tools whose mirrored arguments are remembered.
	maxTools = 4096
	// listTime bounds how long calls wait for a list of tools of the handler.
	listTime = 5 * time.Second
	// listPause is how long the handler does not list again after a list that was not
	// complete.
	listPause = time.Minute
)

// tools knows which arguments of the server's tools are mirrored in headers.
type tools struct {
	mu       sync.Mutex                // guards what follows
	mirrored map[string][]mirror.Param // tools with mirrored arguments, by name
	complete bool                      // all tools have been seen
	listing  chan struct{}             // closed at the end of the list under way; nil: there is none
	listed   time.Time                 // the end of the last one, if it was not complete
}

// of returns the mirrored arguments of a tool. It reports false if that is not known.
func (t *tools) of(name string) ([]mirror.Param, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	params, ok := t.mirrored[name]
	return params, ok || t.complete
}

// learn reads a result of tools/list. all says that it has all tools. Tools whose
// annotations break the rules have no mirrored arguments: clients leave them out.
func (t *tools) learn(result json.RawMessage, all bool) {
	found := make(map[string][]mirror.Param)
	list, _ := jsonrpc.Member(result, "tools")
	jsonrpc.Each(list, func(tool json.RawMessage) {
		schema, _ := jsonrpc.Member(tool, "inputSchema")
		if params, err := mirror.Params(schema); err == nil && len(params) > 0 {
			member, _ := jsonrpc.Member(tool, "name")
			name, _ := jsonrpc.Text(member)
			found[name] = params
		}
	})
	_, more := jsonrpc.Member(result, "nextCursor")
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, params := range found {
		if t.mirrored == nil {
			t.mirrored = make(map[string][]mirror.Param)
		}
		if len(t.mirrored) < maxTools {
			t.mirrored[name] = params
		}
	}
	t.complete = t.complete || all && !more
}

// forget drops what is known: the list has changed.
func (t *tools) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mirrored, t.complete = nil, false
}

// listsAll reports whether the answer to a tools/list begins with the first tool.
func listsAll(q *request) bool {
	_, ok := jsonrpc.Member(q.Params(), "cursor")
	return !ok
}

// begin begins a list of the tools, which the caller must end, unless one is under way or
// none is needed now. It returns what is closed at the end of the list; nil if there is
// nothing to wait for.
func (t *tools) begin() (listing chan struct{}, begun bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begun = !t.complete && t.listing == nil && (t.listed.IsZero() || time.Since(t.listed) >= listPause)
	if begun {
		t.listing = make(chan struct{})
	}
	return t.listing, begun
}

// end ends the list that is under way.
func (t *tools) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.listing)
	t.listing, t.listed = nil, time.Time{}
	if !t.complete {
		t.listed = time.Now()
	}
}

// mirrored returns the mirrored arguments of a tool. If they are not known, the server is
// asked for its tools: one list at a time serves all calls that wait for it. If it has not
// the tool, or takes too long, no arguments are checked: the server refuses the call, if it
// knows the tool.
func (l *link) mirrored(ctx context.Context, tool string) []mirror.Param {
	t := &l.group.tools
	params, known := t.of(tool)
	if known {
		return params
	}
	listing, begun := t.begin()
	switch {
	case begun:
		l.listTools(context.WithoutCancel(ctx)) // others may wait for it too
	case listing != nil:
		select {
		case <-listing:
		case <-ctx.Done():
		}
	}
	params, _ = t.of(tool)
	return params
}

// listTools lists the tools for the handler itself, as far as it can within listTime. It
// ends the list that the caller has begun.
func (l *link) listTools(ctx context.Context) {
	defer l.group.tools.end()
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	if _, ok := jsonrpc.Member(l.result, "capabilities", "tools"); !ok {
		l.group.tools.learn(nil, true)
		return
	}
	params := json.RawMessage(nil)
	for range maxToolPages {
		m, err := l.ask(ctx, mcp.MethodListTools, params)
		if err != nil || m.Result() == nil {
			return
		}
		cursor, more := jsonrpc.Member(m.Result(), "nextCursor")
		more = more && cursor[0] == '"'
		l.group.tools.learn(jsonrpc.RemoveMember(m.Result(), "nextCursor"), !more)
		if !more {
			return
		}
		params = jsonrpc.SetMember(json.RawMessage("{}"), cursor, "cursor")
	}
}
