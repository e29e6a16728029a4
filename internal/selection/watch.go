package selection

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/pages"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// Watch finds the rules that meet nothing, from the pages that pass to clients. It says so once for each kind, when the
// first list is complete. It is safe for concurrent use.
type Watch struct {
	rules *Rules

	mu    sync.Mutex            // guards what follows
	lists map[string]*watchList // by the method
	done  [Resources + 1]bool   // the kinds of which it has been said
}

// watchList is how far a list has come.
type watchList struct {
	unmet    []string // the rules that no page has met
	complete bool
}

// NewWatch returns a Watch of rules.
func NewWatch(rules *Rules) *Watch {
	return &Watch{rules: rules, lists: make(map[string]*watchList)}
}

// Page notes the result of a method that lists something; isFirst says that the request had no cursor. It returns the
// rules that meet nothing, as in the configuration, with the page that completes the lists of a kind. A nil *Watch
// notes nothing.
func (w *Watch) Page(method string, isFirst bool, result json.RawMessage) (unmet []string) {
	kind, member, ok := ListOf(method)
	if w == nil || !ok || !w.rules.Restricts(kind) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done[kind] {
		return nil
	}
	var entries []json.RawMessage
	list, _ := rawjson.Member(result, member)
	rawjson.Each(list, func(entry json.RawMessage) { entries = append(entries, entry) })
	now, before := w.rules.Unmet(kind, entries), w.lists[method]
	switch {
	case isFirst:
		w.lists[method] = &watchList{unmet: now}
	case before == nil: // the list was begun before
		return nil
	default:
		before.unmet = both(before.unmet, now)
	}
	if pages.Next(result) != nil {
		return nil
	}
	w.lists[method].complete = true
	unmet = w.lists[method].unmet
	if kind == Resources { // one rule is for both lists
		other := w.lists[mcp.MethodListResources]
		if method == mcp.MethodListResources {
			other = w.lists[mcp.MethodListTemplates]
		}
		if other == nil || !other.complete {
			return nil
		}
		unmet = both(unmet, other.unmet)
	}
	w.done[kind] = true
	return unmet
}

// both returns what is in both lists.
func both(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(one string) bool { return !slices.Contains(b, one) })
}
