package gateway

import (
	"cmp"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/statuspage"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	process "github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
)

// shownName is what people call the only server, as on its own page, if that can be a part of a path.
func shownName(o *settings) string {
	if strings.Contains(o.known(), "/") {
		return ""
	}
	return o.known()
}

// statusPage returns the status page of the gateways that all returns.
func statusPage(all func() []*Gateway) http.Handler {
	return statuspage.New(func() (servers []statuspage.Server, replicas []httpcheck.Replica, open bool) {
		gateways := all()
		for _, g := range gateways {
			servers = append(servers, g.look())
			open = open || g.now.Load().supplier.Closed().Err() == nil
		}
		return servers, replicasOf(gateways), open
	})
}

// replicasOf returns the replicas of gateways; nil without a cluster.
func replicasOf(gateways []*Gateway) []httpcheck.Replica {
	if cluster := gateways[0].now.Load().opts.Replicas; cluster != nil {
		return cluster.Replicas()
	}
	return nil
}

// showsCommand reports whether the status page, which is the same for all visitors, has the command of a login: nobody
// but this machine may see details by it, and it has no more of the address than the page itself. Hosted servers have
// keys in their paths.
func (g *Gateway) showsCommand(command, place string) bool {
	hidesPart := strings.Contains(command, "://") && !strings.Contains(command, place)
	return g.detailed(connstate.Client{Local: true}) && !hidesPart
}

// look returns what the status page shows of the server.
func (g *Gateway) look() statuspage.Server {
	now := g.now.Load()
	s := statuspage.Server{
		Name: cmp.Or(g.name, shownName(&now.opts)), Upstream: "in process",
		Health: now.supplier.Health(), Totals: g.metrics.Totals(),
		Tools: now.supplier.KnownTools(), Hour: g.metrics.Hour(), Connections: g.Snapshot(),
		Members: g.members(),
	}
	s.LoginCommand, s.NeedsLogin = now.needsLogin()
	if at, ok := now.up.(remote.URL); ok && !g.showsCommand(s.LoginCommand, at.Place()) {
		s.LoginCommand = ""
	}
	switch up := now.up.(type) {
	case composed:
		s.Upstream = "view"
	case process.Command:
		s.Upstream, s.Place = "child process", filepath.Base(up.Path)
	case remote.URL:
		s.Upstream, s.Place = "URL", up.Place()
	}
	return s
}
