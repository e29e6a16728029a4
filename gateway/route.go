package gateway

import (
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/sse"
	"github.com/mcp-sse/mcp-sse/streamable"
)

// Path is where a gateway serves its clients, below Options.Prefix. At alias it does the
// same: configurations of clients of HTTP+SSE name that.
const (
	Path  = "/mcp"
	alias = "/sse"
)

// ServeHTTP serves both transports at Path and at /sse under Options.Prefix, or with
// Options.SinglePath at any path. Messages over HTTP+SSE go to that path with
// /{id}/message. A request shows which transport its client speaks.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !g.hasRoute(r):
		g.front.NotFound(w, r, g.noRoute(r))
	case g.sse != nil && (g.mcp == nil || g.sse.HasMessage(r) || !streamable.Claims(r)):
		g.sse.ServeHTTP(w, r)
	default:
		g.mcp.ServeHTTP(w, r)
	}
}

func (g *Gateway) hasRoute(r *http.Request) bool {
	if g.opts.SinglePath {
		return g.sse != nil || g.mcp != nil
	}
	path, below := strings.CutPrefix(r.URL.Path, g.opts.Prefix)
	if g.sse != nil {
		path, _ = sse.CutMessage(path)
	}
	return below && (path == Path || path == alias) && (g.sse != nil || g.mcp != nil)
}

// noRoute returns what a client is told that asks for another path.
func (g *Gateway) noRoute(r *http.Request) string {
	if g.sse == nil && g.mcp == nil { // all is on stdio
		return "no such route: this gateway serves no HTTP"
	}
	return "no such route: MCP is at " + g.front.OuterPrefix(r) + g.opts.Prefix + Path
}
