package compose

import (
	"context"
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/internal/merge"
)

// init opens the rules of a view to the program sse-server, and to the gateway in front. They are no part of the public
// API.
func init() {
	merge.OfViews = merge.Views{
		Input: func(view any) merge.Input { return view.(*View).configured().input() },
		Listed: func(view any, r *merge.Result) []json.RawMessage {
			return view.(*View).configured().listed(r)
		},
		Offers: func(ctx context.Context, view any, known merge.KnownLists) merge.Offers {
			return view.(*View).offers(ctx, known)
		},
		Upstreams: func(view any) (all []any) {
			if now := view.(*View).configured(); now != nil { // one that New has not made has none
				for _, m := range now.members {
					all = append(all, m.Upstream)
				}
			}
			return all
		},
	}
}

// configured returns the setup that new sessions get.
func (v *View) configured() *setup {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.setup
}

// listed returns the tools in the list of a result.
func (s *setup) listed(r *merge.Result) (tools []json.RawMessage) {
	if s.opts.Search {
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
}

// offers returns what the view would list for the client of ctx, as far as the lists of its members are known. It
// opens nothing.
func (v *View) offers(ctx context.Context, known merge.KnownLists) merge.Offers {
	setup := v.configured()
	in := setup.input()
	var all merge.Offers
	at := make(map[string]int) // the places of members in all
	for i, m := range setup.members {
		if !m.may(ctx) {
			continue
		}
		one := merge.OfferingMember{Name: m.Name, Upstream: m.Upstream, Tools: -1}
		for kind, list := range known(m.Upstream) {
			kind := merge.Kind(kind)
			isLocated := kind > merge.Prompts // matters for the warning that a rule meets nothing, and for nothing else
			if list != nil && (!isLocated || m.rules.Restricts(kind.Rules())) {
				in.Members[i].Lists[kind] = merge.NewList(kind, list)
			}
		}
		if in.Members[i].Lists[merge.Tools] != nil {
			one.Tools = 0
		}
		at[m.Name] = len(all.Members)
		all.Members = append(all.Members, one)
	}
	result := merge.Build(in)
	all.Tools, all.Warnings = result.Lists[merge.Tools], result.Warnings()
	for _, tool := range all.Tools {
		all.Members[at[tool.Member]].Tools++
	}
	return all
}
