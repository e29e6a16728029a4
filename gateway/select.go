package gateway

import (
	"reflect"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/bridge"
	"github.com/mcp-sse/mcp-sse/internal/selection"
)

// compileSelection returns the rules of a selection, nil if they leave nothing out.
func compileSelection(s *compose.Selection) (*selection.Rules, error) {
	if s == nil {
		return nil, nil
	}
	return selection.Compile(selection.Spec{
		Include: s.Include, Exclude: s.Exclude, Only: selection.Only(s.Only.String()),
		Prompts: s.Prompts, Resources: s.Resources,
	})
}

// selectBy sets what Options.Select, which is valid, leaves of the server. was is what the gateway serves now, or nil:
// the hints of its tools stay known if the server stays.
func (n *serving) selectBy(was *serving) {
	n.hints = &selection.Hints{}
	if was != nil && sameServer(was.up, n.up) {
		n.hints = was.hints
		if len(was.selectionChanges(n)) == 0 { // what it has warned of, it does not warn of again
			n.selection = was.selection
			return
		}
	}
	if rules, _ := compileSelection(n.opts.Select); rules != nil {
		n.selection = &bridge.Selection{Rules: rules, Hints: n.hints, Watch: selection.NewWatch(rules)}
	}
}

// selectionChanges returns the kinds of lists that clients get otherwise with n, because its selection is another one.
func (was *serving) selectionChanges(n *serving) (kinds []string) {
	var before, now compose.Selection
	if was.opts.Select != nil {
		before = *was.opts.Select
	}
	if n.opts.Select != nil {
		now = *n.opts.Select
	}
	same := func(a, b []string) bool { return reflect.DeepEqual(a, b) } // nil chooses all, and an empty list nothing
	if !same(before.Include, now.Include) || !same(before.Exclude, now.Exclude) || before.Only != now.Only {
		kinds = append(kinds, "tools")
	}
	if !same(before.Prompts, now.Prompts) {
		kinds = append(kinds, "prompts")
	}
	if !same(before.Resources, now.Resources) {
		kinds = append(kinds, "resources")
	}
	return kinds
}
