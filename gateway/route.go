package gateway

import (
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/streamable"
	"github.com/mcp-sse/mcp-sse/sse"
)

// Path is where a gateway serves its clients, below Options.Prefix. At /sse it serves the same, because
// configurations of clients of HTTP+SSE name that path.
const Path = "/mcp"

// alias is the other path at which a gateway serves its clients.
const alias = "/sse"

// ServeHTTP serves both transports at Path and at /sse under Options.Prefix, or with
// Options.SinglePath at any path. Messages over HTTP+SSE go to that path with
// /{id}/message. A request shows which transport its client speaks. Browsers get a page there, and a list
// of the servers at /, as Options.Page says.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = tidy(r)
	switch n := g.now.Load(); {
	case !n.hasRoute(r) && n.listed(w, r, []*Gateway{g}):
	case !n.hasRoute(r):
		n.checks.NotFound(w, r, n.noRoute(r))
	case n.beginsLogin(w, r), g.servesState(n, w, r), n.probed(w, r):
	case n.sse != nil && (n.mcp == nil || n.sse.MessageFor(r) != "" || !streamable.Claims(r)):
		n.sse.ServeHTTP(w, r)
	default:
		n.mcp.ServeHTTP(w, r)
	}
}

// hasRoute reports whether a request is for a transport that is served, by its path alone: /mcp or /sse below the
// prefix, or below one of them the path for messages. With SinglePath any path is.
func (n *serving) hasRoute(r *http.Request) bool {
	if n.opts.SinglePath {
		return n.sse != nil || n.mcp != nil
	}
	path, below := strings.CutPrefix(r.URL.Path, n.opts.Prefix)
	if n.sse != nil {
		path, _ = sse.CutMessage(path)
	}
	return below && (path == Path || path == alias) && (n.sse != nil || n.mcp != nil)
}

// noRoute returns what a client is told that asks for another path.
func (n *serving) noRoute(r *http.Request) string {
	if n.sse == nil && n.mcp == nil { // all is on stdio
		return "no such route: this gateway serves no HTTP"
	}
	return "no such route: MCP is at " + n.checks.OuterPrefix(r) + n.opts.Prefix + Path
}
