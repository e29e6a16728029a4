package selection

import (
	"encoding/json"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// maxHints bounds the tools whose hints are kept. A server that lists more has all of them forgotten at that point, so
// that one which lists new names again and again does not fill the memory.
const maxHints = 10_000

// Hints are those of the tools that a server has listed, by their names. A call has a name alone, and rules with
// [Only] need more. The zero Hints knows none. It is safe for concurrent use.
type Hints struct {
	mu sync.Mutex // guards of
	of map[string]mcp.Hints
}

// allows reports whether the hints of a tool are those that are asked for.
func (o Only) allows(h mcp.Hints) bool {
	switch o {
	case ReadOnly:
		return h.ReadOnly
	case NonDestructive:
		return h.ReadOnly || h.NonDestructive
	default:
		return true
	}
}

// Note keeps the hints of a tool of a list.
func (h *Hints) Note(tool json.RawMessage) { h.keep(tool, false) }

// NoteOld keeps the hints of a tool of a list that memory has, unless hints of that tool are known: a list of the
// server itself is newer than memory.
func (h *Hints) NoteOld(tool json.RawMessage) { h.keep(tool, true) }

// keep notes the hints of a tool. Old ones take the place of none.
func (h *Hints) keep(tool json.RawMessage, isOld bool) {
	name, ok := noted(tool)
	if !ok {
		return
	}
	hints := mcp.HintsOf(tool)
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, isKnown := h.of[name]; isOld && (isKnown || len(h.of) >= maxHints) {
		return
	}
	if h.of == nil || len(h.of) >= maxHints {
		h.of = make(map[string]mcp.Hints)
	}
	h.of[name] = hints
}

// noted returns the name of a tool. It reports false for a tool whose hints are not kept.
func noted(tool json.RawMessage) (name string, ok bool) {
	name, ok = rawjson.MemberText(tool, "name")
	return name, ok && len(name) <= 4*maxGlobRunes
}

// NotePage notes the tools of a result of tools/list.
func (h *Hints) NotePage(result json.RawMessage) {
	if tools, ok := rawjson.Member(result, "tools"); ok {
		rawjson.Each(tools, h.Note)
	}
}

// Call returns the verdict on a call of a tool. known says that it is certain: if the rules need hints, and h has none
// of that tool, the verdict is that the tool is left out.
func (r *Rules) Call(name string, h *Hints) (v Verdict, known bool) {
	v = r.Name(Tools, name)
	if !v.Allowed() || !r.NeedsHints() {
		return v, true
	}
	h.mu.Lock()
	hints, known := h.of[name]
	h.mu.Unlock()
	if !r.only.allows(hints) {
		return r.noHint(), known
	}
	return v, true
}

func (r *Rules) noHint() Verdict { return Verdict{NoHint, "only " + string(r.only)} }
