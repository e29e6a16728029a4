package gateway

import (
	"net/http"
	"path/filepath"

	"github.com/mcp-sse/mcp-sse/gateway/internal/statuspage"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// statusPage returns the status page of the gateways that all returns.
func statusPage(all func() []*Gateway) http.Handler {
	for _, g := range all() {
		g.shown.Store(true)
	}
	return statuspage.New(func() (servers []statuspage.Server, open bool) {
		for _, g := range all() {
			g.keepHistory()
			servers = append(servers, g.look())
			open = open || g.now.Load().supplier.Closed().Err() == nil
		}
		return servers, open
	})
}

// keepHistory keeps the counts of each minute for the status page, until Shutdown. It
// begins with Start, if there is a page then, or else when somebody looks at one: a gateway
// that nobody starts or sees needs no Shutdown.
func (g *Gateway) keepHistory() {
	g.sampled.Do(func() {
		supplier := g.now.Load().supplier
		supplier.Go(func() { g.history.Run(supplier.Closed()) })
	})
}

// counts returns what the status page draws.
func (g *Gateway) counts() statuspage.Counts {
	t := g.metrics.Totals()
	return statuspage.Counts{t.Handshakes, t.Requests, t.Errors}
}

// look returns what the status page shows of the server.
func (g *Gateway) look() statuspage.Server {
	now := g.now.Load()
	s := statuspage.Server{
		Name: g.name, Upstream: "in process", Health: now.supplier.Health(), Totals: g.metrics.Totals(),
		Tools: now.supplier.Tools(), Hour: g.history.Hour(), Connections: g.Snapshot(),
	}
	switch up := now.up.(type) {
	case upstream.Command:
		s.Upstream, s.Place = "child process", filepath.Base(up.Path)
	case upstream.URL:
		s.Upstream, s.Place = "URL", up.Place()
	}
	return s
}
