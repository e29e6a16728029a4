package gateway

import (
	"net/http"
	"net/url"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/page"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// pageLogin returns what begins a login at the remote server from the page; nil if the sender of the request may not
// begin one: only a browser on this machine comes back to it, and only without authentication are all clients the
// person's own.
func (n *serving) pageLogin(r *http.Request) remote.PageLogin {
	at, ok := n.up.(remote.URL)
	if !ok || n.page == nil || !n.showsPage(r) || n.opts.Authenticate != nil || !n.checks.IsLocal(r) {
		return nil
	}
	return at.PageLogin()
}

// beginsLogin begins a login for the page of the server, answers with its link, and reports whether it was asked to. No
// other origin may ask, whatever allowed-origins has: the page could have a person log in to another one's account.
func (n *serving) beginsLogin(w http.ResponseWriter, r *http.Request) bool {
	if !page.IsLogin(r) {
		return false
	}
	if _, ok := n.checks.Admit(w, r, httpcheck.Route{Transport: "MCP"}); !ok {
		return true
	}
	origin := "http://" + r.Host
	if r.TLS != nil {
		origin = "https://" + r.Host
	}
	login := n.pageLogin(r)
	at, err := url.Parse(origin)
	switch {
	case err != nil || at.Host != r.Host: // such as 127.0.0.1@evil.example, to which the browser would come back
		n.checks.Refuse(w, r, http.StatusBadRequest, metrics.RejectedHost, "the Host header is no host")
		return true
	case login == nil:
		n.checks.NotFound(w, r, "no login begins here")
		return true
	case len(r.Header["Origin"]) != 1 || r.Header.Get("Origin") != origin:
		n.checks.Refuse(w, r, http.StatusForbidden, metrics.RejectedOrigin,
			"only the page of the server begins a login")
		return true
	}
	back, word := page.LoggedIn(origin + r.URL.EscapedPath())
	link, err := login.BeginAtPage(r.Context(), back)
	if err != nil {
		n.opts.Logger.Warn("login not begun", "err", err)
		http.Error(w, "the login cannot begin here; the log says why", http.StatusBadGateway)
		return true
	}
	page.ServeLink(w, r, link, word)
	return true
}
