package compose

import (
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/internal/merge"
)

// init opens to the program sse-server the rules of a view, which are no part of the public API.
func init() {
	merge.Provide(func(view any) merge.Input {
		v := view.(*View)
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.setup.input()
	}, func(view any, r *merge.Result) (tools []json.RawMessage) {
		if view.(*View).Searches() {
			for _, tool := range toolsOfSearch(r, nil) {
				encoded, _ := json.Marshal(tool) // all of it has a JSON form
				tools = append(tools, encoded)
			}
			return tools
		}
		for _, e := range r.Lists[merge.Tools] {
			tools = append(tools, e.Raw)
		}
		return tools
	})
}
