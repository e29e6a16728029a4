package compose

import "github.com/mcp-sse/mcp-sse/internal/merge"

// init opens to the program sse-server the rules of a view, which are no part of the public API.
func init() {
	merge.ProvideInput(func(view any) merge.Input {
		v := view.(*View)
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.setup.input()
	})
}
