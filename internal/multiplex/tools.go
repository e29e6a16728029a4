package multiplex

import (
	"bytes"
	"encoding/json"
	"maps"
	"sync"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/pages"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxSafeTools bounds how many tools are known to be safe to repeat, and
	// maxSafeBytes their names. Calls of tools beyond these are not repeated.
	maxSafeTools = 4096
	maxSafeBytes = 256 << 10
	// maxListedBytes bounds the list of tools that is kept.
	maxListedBytes = 1 << 20
)

// Tools is what the sessions with one server know of its tools: which may be called again
// without changing anything, as the last tools/list annotated them, and how long that list
// is. It is safe for concurrent use.
type Tools struct {
	mu     sync.Mutex // guards what follows
	offers func(tool json.RawMessage) bool
	safe   map[string]bool
	bytes  int       // of the names of safe tools
	pages  ToolList  // that have come of a list
	list   *ToolList // the last complete one

	coming      []json.RawMessage // the tools of pages that have come; nil: they are too long to be kept
	comingBytes int
	listed      []json.RawMessage // those of list; nil: there is no list, or it is too long
	whole       *wholeList        // nil: list came in several pages, or it is too long
}

// wholeList is a list that came in one page, and what that page says. It does not change.
type wholeList struct {
	page   json.RawMessage
	safe   map[string]bool
	bytes  int
	list   *ToolList
	listed []json.RawMessage
}

// Offer has only those tools of later lists counted that offers reports; nil: all.
func (t *Tools) Offer(offers func(tool json.RawMessage) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offers = offers
}

// Safe reports whether a request may be repeated: it only reads, or it calls a tool
// that the server has annotated with readOnlyHint or idempotentHint. It trusts the
// annotations.
func (t *Tools) Safe(m *jsonrpc.Message) bool {
	if m.Method != mcp.MethodCallTool {
		return ReadOnly(m.Method)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.safe) == 0 { // most have none, and need not look for the name
		return false
	}
	at := m.Param("name")
	name, _ := at.Text()
	return t.safe[name] && !at.Ambiguous
}

// NoteList notes the pages of a list of tools that the gateway has read to its end, in their order,
// and returns its size.
func (t *Tools) NoteList(pages []json.RawMessage) *ToolList {
	t.mu.Lock()
	read := &Tools{offers: t.offers} // the pages that a client is reading are counted apart
	t.mu.Unlock()
	var list *ToolList
	for i, page := range pages {
		list = read.notePage(i == 0, page)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.safe, t.bytes, t.list, t.listed, t.whole = read.safe, read.bytes, list, read.listed, nil
	return list
}

// Count returns the size of a list of tools that was read before, and learns nothing from it.
func (t *Tools) Count(tools []json.RawMessage) *ToolList {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := &ToolList{}
	for _, tool := range tools {
		if t.offers == nil || t.offers(tool) {
			size.add(tool)
		}
	}
	return size
}

// notePage notes the tools in the result of a tools/list. A first page replaces all
// known ones. With the last page it returns the size of the list, before that nil.
func (t *Tools) notePage(first bool, result json.RawMessage) *ToolList {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first || t.safe == nil {
		t.safe, t.bytes, t.pages = make(map[string]bool), 0, ToolList{}
		t.coming, t.comingBytes = []json.RawMessage{}, 0
	}
	list, _ := rawjson.Member(result, "tools")
	rawjson.Each(list, func(tool json.RawMessage) {
		if t.offers == nil || t.offers(tool) {
			t.pages.add(tool)
		}
		t.keep(tool)
		name, ok := rawjson.MemberText(tool, "name")
		hints := mcp.HintsOf(tool)
		switch safe := hints.ReadOnly || hints.Idempotent; {
		case !ok:
		case t.safe[name] && !safe:
			delete(t.safe, name)
			t.bytes -= len(name)
		case !t.safe[name] && safe && len(t.safe) < maxSafeTools && t.bytes+len(name) <= maxSafeBytes:
			t.safe[name] = true
			t.bytes += len(name)
		}
	})
	if pages.Next(result) != nil {
		return nil
	}
	size := t.pages
	t.list, t.listed, t.coming, t.whole = &size, t.coming, nil, nil
	return &size
}

// noteWhole notes a list that came in one page, as notePage does, and returns nil if it is none. Most clients get the
// same bytes: then it takes what other has noted of them, because a list may have thousands of tools, each of which
// notePage reads several times.
func (t *Tools) noteWhole(result json.RawMessage, other *Tools) *ToolList {
	other.mu.Lock()
	whole := other.whole
	other.mu.Unlock()
	if whole == nil || !bytes.Equal(whole.page, result) {
		list := t.notePage(true, result)
		t.mu.Lock()
		defer t.mu.Unlock()
		if list != nil && len(result) <= maxListedBytes {
			t.whole = &wholeList{bytes.Clone(result), maps.Clone(t.safe), t.bytes, list, t.listed}
		}
		return list
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.safe, t.bytes, t.list, t.listed, t.whole = maps.Clone(whole.safe), whole.bytes, whole.list, whole.listed, whole
	t.coming = nil
	return t.list
}

// takeList takes the last complete list of another session, and learns nothing of what is safe.
func (t *Tools) takeList(other *Tools) {
	other.mu.Lock()
	list, listed, whole := other.list, other.listed, other.whole
	other.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list, t.listed, t.whole = list, listed, whole
}

// keep keeps a tool of a list that is coming.
func (t *Tools) keep(tool json.RawMessage) {
	if t.comingBytes += len(tool); t.comingBytes > maxListedBytes {
		t.coming = nil
	}
	if t.coming != nil {
		t.coming = append(t.coming, bytes.Clone(tool)) // not a part of the whole page
	}
}

// Listed returns the whole list of which List has the size, also tools that are not offered. It must not be changed.
// Listed reports false if there is none, or it is over a MiB.
func (t *Tools) Listed() (tools []json.RawMessage, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.listed, t.listed != nil
}

// ReadOnly reports whether a request of a method changes nothing at the server.
func ReadOnly(method string) bool {
	switch method {
	case mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodGetPrompt, mcp.MethodListResources,
		mcp.MethodReadResource,
		mcp.MethodListTemplates, mcp.MethodComplete, mcp.MethodPing:
		return true
	}
	return false
}

// ToolList is the size of a server's list of tools, without those that are not offered, as far as clients have limits
// for it.
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
	text, _ := rawjson.MemberText(tool, member)
	return utf8.RuneCountInString(text)
}

// List returns the size of the list that a client last read to its end, nil if none has.
func (t *Tools) List() *ToolList {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list
}
