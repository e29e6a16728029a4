package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/statuspage"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/page"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
)

// visitor is who asks for the state of a server: a client that has been let in, as far as that server goes.
type visitor struct {
	request   *http.Request
	principal string
}

// servesState answers a request for the state of the server, and reports whether it was one. It has the checks of any
// request of a client, and opens nothing.
func (g *Gateway) servesState(n *serving, w http.ResponseWriter, r *http.Request) bool {
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !isRead || !page.IsState(r) || n.page == nil || !n.showsPage(r) ||
		httpcheck.AcceptOf(r).Names("text/event-stream") {
		return false
	}
	principal, ok := n.checks.Admit(w, r, httpcheck.Route{CORS: http.MethodGet, Transport: "MCP"})
	if ok {
		state := g.state(visitor{r, principal})
		page.ServeState(w, r, &state)
	}
	return true
}

// state returns how the server is, as far as the visitor may see that. It asks nobody and opens nothing.
func (g *Gateway) state(v visitor) (s page.State) {
	n := g.now.Load()
	found, isListed := n.supplier.Known()
	if n.view() != nil {
		g.stateOfView(n, v, &s)
	} else {
		s.State, s.Failure = g.conditionFor(v)
		if command, is := n.needsLogin(); is && g.maySeeDetails(v) {
			s.LoginCommand, s.LogsInHere = command, n.pageLogin(v.request) != nil
		}
		if isListed {
			n.addLists(&s, &found)
		} else if size := n.supplier.Tools(); size != nil {
			s.Tools = &size.Tools
		}
	}
	title := found.About.Title
	if n.view() != nil && g.name != "" {
		title = n.opts.Title
	}
	s.Describe(cmp.Or(n.opts.known(), found.Name, "server"), title, found.Version,
		cmp.Or(n.opts.Description, found.About.Instructions))
	return s
}

// addLists adds what is known of the lists of a server that is no view.
func (n *serving) addLists(s *page.State, found *handshake.Found) {
	tools := n.offered(selection.Tools, found.Tools)
	for _, tool := range tools {
		name := selection.NameOf(selection.Tools, tool)
		s.AddTool(tool, name, "", name)
	}
	s.Tools = new(len(tools))
	if n.selection != nil {
		for _, rule := range found.Unmet(n.selection.Rules) {
			s.AddWarning(rule + " meets nothing that the server lists")
		}
	}
	if found.Knows(mcp.MethodListPrompts) {
		s.Prompts = new(len(n.offered(selection.Prompts, found.Prompts)))
	}
	if found.Knows(mcp.MethodListResources) {
		s.Resources = new(len(n.offered(selection.Resources, found.Resources)))
	}
}

// offered returns the entries of a list that the selection does not leave out.
func (n *serving) offered(kind selection.Kind, all []json.RawMessage) []json.RawMessage {
	if n.selection == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(entry json.RawMessage) bool {
		return !n.selection.Rules.Entry(kind, entry).Allowed()
	})
}

// knownLists returns the lists that clients get of the server, as far as they are known; nil for each that is not.
func (g *Gateway) knownLists() (lists [merge.Kinds][]json.RawMessage) {
	n := g.now.Load()
	found, _ := n.supplier.Known()
	all := [merge.Kinds][]json.RawMessage{merge.Tools: found.Tools, merge.Prompts: found.Prompts,
		merge.Resources: found.Resources, merge.Templates: found.Templates}
	for kind, list := range all {
		if kind := merge.Kind(kind); found.Knows(kind.Method()) {
			lists[kind] = append([]json.RawMessage{}, n.offered(kind.Rules(), list)...)
		}
	}
	return lists
}

// conditionFor returns how the server is, and why it fails, if it does.
func (g *Gateway) conditionFor(v visitor) (state string, failure *page.Failure) {
	n := g.now.Load()
	s := statuspage.Server{Health: n.supplier.Health(), Totals: g.metrics.Totals()}
	_, s.NeedsLogin = n.needsLogin()
	state = s.Condition(time.Now())
	if state == "failing" || state == "unstable" {
		failure = g.failureFor(v, &s.Health)
	}
	return state, failure
}

// needsLogin reports whether the server waits for a person who logs in, and what the person types.
func (n *serving) needsLogin() (command string, is bool) {
	if at, ok := n.up.(remote.URL); ok {
		return at.LoginNeeded()
	}
	return "", false
}

// failureFor returns the last failure of the server, as far as the visitor may see its details.
func (g *Gateway) failureFor(v visitor, h *handshake.Health) *page.Failure {
	if h.Cause == nil {
		return nil
	}
	message, reason, remedy := "the session with the server was lost", "", ""
	failure, isStart := errors.AsType[*handshake.Failure](h.Cause)
	if isStart {
		message, reason = failure.Safe().Error(), failure.Reason
	}
	if g.maySeeDetails(v) {
		message = h.Cause.Error()
		if advise := g.now.Load().opts.program.Remedy; advise != nil {
			remedy = advise(h.Cause)
		}
	}
	return page.NewFailure(message, reason, remedy, h.Failed.UnixMilli())
}

// maySeeDetails reports whether a visitor may see the details of errors, by the rule for clients.
func (g *Gateway) maySeeDetails(v visitor) bool {
	return g.detailed(connstate.Client{Local: g.now.Load().checks.IsLocal(v.request)})
}

// view returns the view that is served; nil if the server is none.
func (n *serving) view() composed {
	view, _ := n.up.(composed)
	return view
}

// stateOfView adds the members of a view that the visitor may use, and what the view lists of them.
func (g *Gateway) stateOfView(n *serving, v visitor, s *page.State) {
	known := func(upstream any) (lists [merge.Kinds][]json.RawMessage) {
		if member, ok := upstream.(*Gateway); ok {
			lists = member.knownLists()
		}
		return lists
	}
	offers := merge.OfViews.Offers(n.asking(v), n.view(), known)
	reports := make(map[string]compose.Report)
	for _, one := range n.view().Members() {
		reports[one.Name] = one
	}
	s.View = true
	isKnown := false // of any member
	for _, m := range offers.Members {
		one := page.Member{Name: m.Name}
		one.State, one.Failure = g.stateOfMember(v, m.Upstream, reports[m.Name])
		switch tools := reports[m.Name].Tools; {
		case m.Tools >= 0:
			one.Tools, isKnown = new(m.Tools), true
		case tools >= 0:
			one.Tools = &tools
		}
		s.Members = append(s.Members, one)
	}
	for _, tool := range offers.Tools {
		s.AddTool(tool.Raw, tool.Name, tool.Member, tool.Own)
	}
	if isKnown {
		s.Tools = new(len(offers.Tools))
	}
	for _, text := range offers.Warnings {
		s.AddWarning(text)
	}
	s.State = stateOf(s.Members)
	if n.supplier.Health().Draining {
		s.State = "draining"
	}
}

// stateOfMember returns how a member of a view is, and why it fails, if it does: by what the view knows of it, and
// else by its gateway.
func (g *Gateway) stateOfMember(v visitor, upstream any, report compose.Report) (state string, _ *page.Failure) {
	state = report.State
	var failure *page.Failure
	if member, ok := upstream.(*Gateway); ok {
		state, failure = member.conditionFor(v)
		if failure != nil && !g.maySeeDetails(v) { // the member's own rule may be another one
			failure.Message, failure.Remedy = "this server of the view fails", ""
		}
	}
	switch report.State {
	case compose.StateLate:
		return cmp.Or(stateIfFailing(failure), "late"), failure
	case compose.StateFailing:
		if failure == nil {
			message := "this server of the view fails"
			if g.maySeeDetails(v) {
				message = report.Failure
			}
			failure = page.NewFailure(message, "", "", 0)
		}
		return "failing", failure
	}
	return state, failure
}

// stateIfFailing returns the state of a server that has a failure, else an empty one.
func stateIfFailing(failure *page.Failure) string {
	if failure != nil {
		return "failing"
	}
	return ""
}

// stateOf returns how a view is with these members: it has tools as long as one of them has.
func stateOf(members []page.Member) string {
	failing := 0
	best := "not started"
	order := []string{
		"not started", "late", "standing by", statuspage.WaitingForLogin, "starting", "unstable", statuspage.Cached,
		"listed", "healthy",
	}
	for _, m := range members {
		if m.State == "failing" {
			failing++
		} else if slices.Index(order, m.State) > slices.Index(order, best) {
			best = m.State
		}
	}
	switch {
	case failing > 0 && failing == len(members):
		return "failing"
	case failing > 0:
		return "partly failing"
	case best == "listed": // a member without a gateway
		return "healthy"
	}
	return best
}

// asking returns the context with which a view decides what the visitor may use.
func (n *serving) asking(v visitor) context.Context {
	ctx, refusal := n.checks.Passed(v.request, v.principal)
	if ctx == nil || refusal != nil {
		ctx = context.WithoutCancel(v.request.Context())
	}
	return asker.NewContext(ctx, &asker.Asker{
		Principal: v.principal, Addr: n.checks.ClientAddr(v.request), Local: n.checks.IsLocal(v.request),
		UserAgent: v.request.UserAgent(), Header: v.request.Header, Gateway: n.opts.known(), Logger: n.opts.Logger,
		Credentials: func() string { return n.checks.Credentials(v.request) },
	})
}
