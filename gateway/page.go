package gateway

import (
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/page"
)

// showsPage reports whether the sender of a request may have the page for browsers.
func (n *serving) showsPage(r *http.Request) bool {
	switch n.opts.Page {
	case PageOn:
		return true
	case PageOff:
		return false
	}
	return n.opts.Authenticate != nil || n.checks.IsLocal(r)
}

// newPage returns the page for browsers; nil if nobody may have it. isListed is for page.Options.
func (s *settings) newPage(isListed func() bool) (*page.Page, error) {
	if s.Page == PageOff {
		return nil, nil
	}
	opts := page.Options{Name: s.known(), Transports: s.transportNames(), AutoInitialize: !s.NoAutoInitialize,
		Prefix: s.Prefix, IsListed: isListed}
	if login := s.PageLogin; login != nil {
		opts.Login = &page.Login{Issuer: login.Issuer, ClientID: login.ClientID, Resource: login.Resource,
			Scope: strings.Join(login.Scopes, " ")}
	}
	return page.New(opts)
}

// shownTo returns the gateways that a list for the sender of a request may name: one that not everybody may use is for
// those whom it lets in.
func shownTo(r *http.Request, all []*Gateway) (shown []*Gateway) {
	for _, g := range all {
		o := &g.now.Load().opts
		if o.program.Restricted && o.Authenticate != nil {
			if _, err := o.Authenticate(r); err != nil {
				continue
			}
		}
		shown = append(shown, g)
	}
	return shown
}

// listed serves the list of servers to a browser that opens the root, and reports whether it has.
func (n *serving) listed(w http.ResponseWriter, r *http.Request, all []*Gateway) bool {
	isRoot := r.Method == http.MethodGet && r.URL.Path == "/"
	if !isRoot || !httpcheck.AcceptOf(r).Names("text/html") && !page.IsFile(r) || !n.showsPage(r) {
		return false
	}
	var links []page.Link
	for _, g := range shownTo(r, all) {
		if now := g.now.Load(); now.page != nil && (now.sse != nil || now.mcp != nil) {
			links = append(links, page.Link{Name: now.opts.known(), Path: g.prefix + Path})
		}
	}
	if len(links) == 0 {
		return false
	}
	if n.checks.PageAllowed(w, r) {
		page.ServeList(w, r, links)
	}
	return true
}
