package gateway

import (
	"cmp"
	"net/http"
	"slices"
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

// sender is the sender of a request for a list of servers. Each gateway says once who that is: it may ask an issuer.
type sender struct {
	r    *http.Request
	said map[*Gateway]identity
}

// identity is who the sender of a request is for one gateway.
type identity struct {
	principal string
	err       error // the gateway does not let the sender in
}

func newSender(r *http.Request) *sender { return &sender{r: r, said: make(map[*Gateway]identity)} }

// at returns the principal that the sender is at a gateway with these options, or why that does not let the sender in.
func (s *sender) at(g *Gateway, o *settings) (principal string, err error) {
	who, isKnown := s.said[g]
	if !isKnown && o.Authenticate != nil {
		who.principal, who.err = o.Authenticate(s.r)
		s.said[g] = who
	}
	return who.principal, who.err
}

// shownTo returns the gateways that a list for the sender of a request may name. A gateway that not everybody may use
// is in the list if it lets the sender in.
func shownTo(from *sender, all []*Gateway) (shown []*Gateway) {
	for _, g := range all {
		o := &g.now.Load().opts
		if o.program.Restricted {
			if _, err := from.at(g, o); err != nil {
				continue
			}
		}
		shown = append(shown, g)
	}
	return shown
}

// listed serves the list of servers to a browser that opens the root, and how they are to its script. It reports
// whether it has.
func (n *serving) listed(w http.ResponseWriter, r *http.Request, all []*Gateway) bool {
	isState, isPage := page.IsState(r), httpcheck.AcceptOf(r).Names("text/html")
	switch {
	case !isRoot(r) || !isPage && !page.IsFile(r) && !isState:
		return false
	case !n.showsPage(r):
		return isPage && n.saysWhyNone(w, r)
	case isState && !n.checks.SiteAllowed(w, r), !isState && !n.checks.PageAllowed(w, r):
		return true // it is refused before anybody is asked who has sent it
	}
	var links []page.Link
	var linked []*Gateway
	from := newSender(r)
	for _, g := range viewsFirst(shownTo(from, all)) {
		if now := g.now.Load(); now.page != nil && (now.sse != nil || now.mcp != nil) {
			links = append(links, page.Link{Name: now.opts.known(), Path: g.prefix + Path, IsView: now.view() != nil,
				Page: now.page})
			linked = append(linked, g)
		}
	}
	switch {
	case len(links) == 0:
		return false
	case isState:
		serveLanding(w, from, linked)
	default:
		page.ServeList(w, r, links)
	}
	return true
}

// isRoot reports whether a request is one for the root, where the list of servers is.
func isRoot(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Path == "/" }

// saysWhyNone tells a browser on another machine why it gets no page, and reports whether it has.
func (n *serving) saysWhyNone(w http.ResponseWriter, r *http.Request) bool {
	if !n.keepsPageHere(r) {
		return false
	}
	if n.checks.PageAllowed(w, r) {
		page.ServeWithout(w, true)
	}
	return true
}

// viewsFirst returns the gateways with those of views before those of servers.
func viewsFirst(all []*Gateway) []*Gateway {
	slices.SortStableFunc(all, func(a, b *Gateway) int {
		place := map[bool]int{true: 0, false: 1}
		return place[a.view() != nil] - place[b.view() != nil]
	})
	return all
}

// serveLanding serves how servers are that a visitor may know of: more than the name of those that the visitor may use.
func serveLanding(w http.ResponseWriter, from *sender, all []*Gateway) {
	landing := &page.Landing{}
	for _, g := range all {
		landing.Servers = append(landing.Servers, g.onLanding(from))
	}
	page.ServeLanding(w, from.r, landing, neededForAll(landing.Servers))
}

// locked is the state of a server of which the visitor may know no more than the name.
const locked = "locked"

// onLanding returns how the server is, for the list of all.
func (g *Gateway) onLanding(from *sender) (s page.State) {
	n := g.now.Load()
	principal, mayUse := "", n.showsPage(from.r)
	if mayUse {
		who, err := from.at(g, &n.opts)
		principal, mayUse = who, err == nil
	}
	if mayUse {
		s = g.state(visitor{from.r, principal})
	} else {
		s.Describe(cmp.Or(n.opts.known(), "server"), "", "", "")
		s.State, s.View = locked, n.view() != nil
	}
	s.Path = g.prefix + Path
	if n.page != nil { // a reload may have switched it off
		s.Paste = n.page.Paste()
	}
	s.Token, s.LogsIn = n.opts.Authenticate != nil, n.opts.PageLogin != nil
	return s
}

// neededForAll returns the places of what a client of the visitor needs to reach each server once: of views, and of
// servers that none of these has.
func neededForAll(all []page.State) (places []int) {
	inView := make(map[string]bool)
	for _, s := range all {
		for _, m := range s.Members {
			inView[m.Name] = true
		}
	}
	for i, s := range all {
		if s.State != locked && (s.View || !inView[s.Name]) {
			places = append(places, i)
		}
	}
	return places
}
