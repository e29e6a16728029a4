package gateway

import (
	"net/http"
	"path/filepath"
	"strings"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/statuspage"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// statusPage returns the status page of the gateways that all returns.
func statusPage(all func() []*Gateway) http.Handler {
	for _, g := range all() {
		g.shown.Store(true)
	}
	return statuspage.New(lookAll(all))
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
	return statuspage.Counts{Handshakes: t.Handshakes, Requests: t.Requests, Errors: t.Errors}
}

// lookAll is the statuspage.Source of gateways, which all returns.
func lookAll(all func() []*Gateway) statuspage.Source {
	return func() (servers []statuspage.Server, open bool) {
		for _, g := range all() {
			g.keepHistory()
			servers = append(servers, g.look())
			open = open || g.now.Load().supplier.Closed().Err() == nil
		}
		return servers, open
	}
}

// look returns what the status page shows of the server.
func (g *Gateway) look() statuspage.Server {
	now, t := g.now.Load(), g.metrics.Totals()
	h := now.supplier.Health()
	s := statuspage.Server{
		Name: g.name, Tools: now.supplier.Tools(),
		Draining: h.Draining, Failing: h.Failing, Started: h.Started, Failed: h.Failed,
		Sessions: t.Sessions, Children: t.Children, Restarts: t.Restarts, Crashes: t.Crashes,
		Hour: g.history.Hour(), Connections: g.Snapshot(),
	}
	if h.Failure != nil {
		s.Failure = strings.TrimPrefix(h.Failure.Error(), "initialization failed: ")
	}
	if h.Server != nil {
		server := connstate.Server(*h.Server)
		s.Initialized = &server
	}
	switch up := now.up.(type) {
	case upstream.Command:
		s.Upstream, s.Place = "child process", filepath.Base(up.Path)
	case upstream.URL:
		s.Upstream, s.Place = "URL", up.Place()
	default:
		s.Upstream = "in process"
	}
	return s
}
