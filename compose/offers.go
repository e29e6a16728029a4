package compose

import (
	"context"

	"github.com/mcp-sse/mcp-sse/internal/merge"
)

// init opens to the gateway in front what a view would list, which is no part of the public API.
func init() {
	merge.ProvideOffers(func(ctx context.Context, view any, known merge.KnownTools) merge.Offers {
		return view.(*View).offers(ctx, known)
	})
}

// offers returns what the view would list for the client of ctx, as far as the lists of its members are known. It
// opens nothing.
func (v *View) offers(ctx context.Context, known merge.KnownTools) merge.Offers {
	v.mu.Lock()
	setup := v.setup
	v.mu.Unlock()
	in := setup.input()
	var all merge.Offers
	at := make(map[string]int) // the places of members in all
	for i, m := range setup.members {
		if !m.may(ctx) {
			continue
		}
		one := merge.OfferingMember{Name: m.Name, Upstream: m.Upstream, Tools: -1}
		if tools, ok := known(m.Upstream); ok {
			one.Tools = 0
			in.Members[i].Lists[merge.Tools] = merge.NewList(merge.Tools, tools)
		}
		at[m.Name] = len(all.Members)
		all.Members = append(all.Members, one)
	}
	all.Tools = merge.Build(in).Lists[merge.Tools]
	for _, tool := range all.Tools {
		all.Members[at[tool.Member]].Tools++
	}
	return all
}
