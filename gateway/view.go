package gateway

import (
	"context"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// composed is an upstream over other gateways, as a compose.View is.
type composed interface {
	Ready(ctx context.Context) error
	Members() []compose.Report
	Searches() bool
	Called(m *jsonrpc.Message) string
}

var _ composed = (*compose.View)(nil)

// view returns the view that g serves; nil if its server is none.
func (g *Gateway) view() composed {
	return g.now.Load().view()
}

// isView reports whether the server is a view.
func (g *Gateway) isView() bool { return g.view() != nil }

// searches reports whether the server is a view whose tools are found, not listed. Then a client narrows what it finds.
func (g *Gateway) searches() bool {
	view := g.view()
	return view != nil && view.Searches()
}

// called returns the tool that a tools/call is about, if it is another one than the request names. It reports false if
// it is not.
func (g *Gateway) called(m *jsonrpc.Message) (tool string, ok bool) {
	if !g.searches() {
		return "", false
	}
	tool = g.view().Called(m)
	name, _ := m.Param("name").Text()
	return tool, tool != name
}

// members returns the members of the view; nil if the server is none.
func (g *Gateway) members() []compose.Report {
	if view := g.view(); view != nil {
		return view.Members()
	}
	return nil
}

// measureMembers has the metrics ask for the members of the view. Gateways of one Name share the series, so a server
// that is no view leaves them alone.
func (g *Gateway) measureMembers() {
	if g.view() == nil {
		return
	}
	g.metrics.MeasureMembers(func() (all []metrics.Member) {
		for _, one := range g.members() {
			all = append(all, metrics.Member{Name: one.Name, State: one.State})
		}
		return all
	})
}

// MemberConnection is the connection of a member that a connection of a view has.
type MemberConnection struct {
	// Server is the Name of the member's gateway.
	Server string `json:"server,omitempty"`
	// ID and State are those of the connection, which is listed with its server, too.
	ID    string          `json:"id"`
	State connstate.State `json:"state"`
}

// addMembers gives each connection of a view those that it has of its members.
func addMembers(all []ServerSnapshot) {
	of := make(map[string][]MemberConnection) // by the id of the connection in front
	for _, one := range all {
		if one.Front != "" {
			of[one.Front] = append(of[one.Front], MemberConnection{one.Server, one.ID, one.State})
		}
	}
	for i := range all {
		all[i].Members = of[all[i].ID]
	}
}
