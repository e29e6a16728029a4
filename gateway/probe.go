package gateway

import (
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/page"
	"github.com/mcp-sse/mcp-sse/internal/streamable"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// tidy returns a request in which headers that proxies have doubled, with equal values, are
// there once, and whose path has no slash at its end. It changes nothing of r.
func tidy(r *http.Request) *http.Request {
	next := r
	own := func() {
		if next == r {
			next = r.Clone(r.Context())
		}
	}
	for _, name := range []string{"Mcp-Session-Id", "Mcp-Protocol-Version", "Last-Event-Id", "Content-Type"} {
		values := r.Header[name]
		if len(values) == 0 || len(values) == 1 && !strings.Contains(values[0], ",") {
			continue
		}
		if value, ok := single(values); ok {
			own()
			next.Header[name] = []string{value}
		}
	}
	if path := strings.TrimSuffix(r.URL.Path, "/"); path != r.URL.Path && path != "" {
		own()
		next.URL.Path, next.URL.RawPath = path, strings.TrimSuffix(next.URL.RawPath, "/")
	}
	return next
}

// single returns the value of a header that is there several times with the same one.
func single(values []string) (value string, ok bool) {
	for i, part := range strings.Split(strings.Join(values, ","), ",") {
		part = strings.TrimSpace(part)
		if i > 0 && part != value {
			return "", false
		}
		value = part
	}
	return value, true
}

// probed answers a GET that opens no stream, and reports whether it was one. Browsers, link
// previews, uptime checks and some clients look at the URL; none of these may start a
// process, or get a response that does not end.
//
//	Accept                                | at /mcp       | at /sse, a single path, or for HTTP+SSE alone
//	--------------------------------------|---------------|----------------------------------------------
//	names text/html with a greater        |               |
//	quality than text/event-stream        | the page      | the page
//	names text/event-stream               | a stream      | a stream
//	names text/html, as browsers do       | the page      | the page
//	is missing, or */*, as curl and Codex | 405           | a stream
//	names something else                  | 405           | 405
//
// It does not name what it gives the quality 0. The page is that of package page, or a sentence for
// those who may not have it. A HEAD that asks for the page gets its headers.
func (n *serving) probed(w http.ResponseWriter, r *http.Request) bool {
	isMessage := n.sse != nil && n.sse.MessageFor(r) != ""
	isHead := r.Method == http.MethodHead && (httpcheck.AcceptOf(r).Names("text/html") || page.IsFile(r))
	if r.Method != http.MethodGet && !isHead || isMessage || n.mcp != nil && !isHead && streamable.Claims(r) {
		return false
	}
	accept := httpcheck.AcceptOf(r)
	if n.page != nil && page.IsFile(r) && !accept.Names("text/event-stream") && n.showsPage(r) {
		if n.checks.PageAllowed(w, r) {
			n.page.ServeHTTP(w, r)
		}
		return true
	}
	streamsAlone := n.opts.SinglePath || n.mcp == nil || strings.HasSuffix(r.URL.Path, alias)
	switch {
	case accept.Names("text/event-stream") && !accept.Prefers("text/html", "text/event-stream"):
		return false
	case accept.Names("text/html"):
		n.servePage(w, r)
	case n.sse == nil, streamsAlone && accept.TakesEvents():
		return false
	default: // with authentication a stranger learns first how to authenticate
		if _, ok := n.checks.Admit(w, r, httpcheck.Route{CORS: "GET, POST, DELETE", Transport: "MCP"}); ok {
			w.Header().Set("Allow", "GET, POST, DELETE")
			n.checks.RefuseMessage(w, r, httpcheck.Denied(http.StatusMethodNotAllowed, metrics.RejectedMethod,
				"this is an MCP server: POST a message, or open a stream with GET and Accept: text/event-stream"))
		}
	}
	return true
}

// servePage serves the page for browsers, or says why there is none.
func (n *serving) servePage(w http.ResponseWriter, r *http.Request) {
	if !n.checks.PageAllowed(w, r) {
		return
	}
	if n.page != nil && n.showsPage(r) {
		n.page.ServeHTTP(w, r)
		return
	}
	page.ServeWithout(w, n.keepsPageHere(r))
}

// keepsPageHere reports whether the sender of a request has no page because it is on another machine, and nothing
// protects the server.
func (n *serving) keepsPageHere(r *http.Request) bool {
	return n.opts.Page == PageAuto && !n.showsPage(r)
}
