package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// readyGrace is how long Servers.Ready waits for the other servers once one is ready: a
// server that hangs must not make a probe of all time out.
const readyGrace = 500 * time.Millisecond

// Servers serves several MCP servers, each by a Gateway of its own under its own
// prefix. They share the routes for operators, the registry of metrics and the bound of the
// bytes that wait, and nothing else: a server that is down, full or slow does not affect
// the others.
//
// Servers is an http.Handler, safe for concurrent use. Make it with NewServers and
// end it with Shutdown.
type Servers struct {
	unserved *metrics.Metrics // counts requests that reach no gateway
	now      atomic.Pointer[served]

	mu     sync.Mutex // held by Replace and SetRoot; guards what follows
	ending bool       // Drain has been called
}

// served is what Replace and SetRoot replace. It is immutable.
type served struct {
	all       []*Gateway
	root      *Gateway           // of SetRoot; nil: there is none
	checks    *httpcheck.Checker // the rules for requests that reach no gateway; the first gateway's
	elsewhere http.Handler       // serves those requests
}

// NewServers returns Servers of the gateways. Each needs its own Name, a Prefix that
// does not overlap with another, and the same Registry as all others. Otherwise
// NewServers fails, with an error for each fault. Call it before the gateways serve.
func NewServers(gateways ...*Gateway) (*Servers, error) {
	if err := checkServers(gateways); err != nil {
		return nil, err
	}
	unserved, err := metrics.Unserved(gateways[0].promReg)
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	s := &Servers{unserved: unserved}
	s.serve(gateways, nil, gateways[0].budget)
	return s, nil
}

// Replace serves these gateways from now on in place of those before; some of those may
// be among them. It makes the checks of NewServers, and changes nothing if one fails;
// gateways that it adds must not have served. The streams of a gateway that is no longer
// among them go on until the caller shuts it down, after which the registry has no series of
// its Name, unless another gateway has it.
func (s *Servers) Replace(gateways ...*Gateway) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return fmt.Errorf("servers: %w", errEnding)
	}
	if err := checkServers(gateways); err != nil {
		return err
	}
	before := s.now.Load()
	if gateways[0].promReg != before.all[0].promReg {
		return errors.New("servers: the registry cannot be another one")
	}
	if before.root != nil {
		if err := checkRoot(before.root, gateways); err != nil {
			return err
		}
	}
	s.serve(gateways, before.root, before.all[0].budget)
	for _, g := range before.all {
		g.listed.Store(slices.Contains(gateways, g))
	}
	return nil
}

// SetRoot serves root beside the others: at Path and at /sse below its Prefix, which may be the beginning of theirs. It
// gets no request that one of the others takes. nil serves none any more. What holds for Replace holds here: root needs
// a Name of its own and the same Registry, and the caller shuts down the one that was there before.
func (s *Servers) SetRoot(root *Gateway) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.now.Load()
	switch {
	case s.ending:
		return fmt.Errorf("servers: %w", errEnding)
	case root == nil:
	default:
		if err := checkRoot(root, before.all); err != nil {
			return err
		}
	}
	s.serve(before.all, root, before.all[0].budget)
	if before.root != nil && before.root != root {
		before.root.listed.Store(false)
	}
	return nil
}

// checkRoot returns an error for each fault of a gateway that is to be the root beside others.
func checkRoot(root *Gateway, others []*Gateway) error {
	var errs []error
	if root.name == "" {
		errs = append(errs, errors.New("servers: the root has no Name"))
	}
	for _, g := range others {
		switch {
		case g.name == root.name:
			errs = append(errs, fmt.Errorf("servers: two gateways have the Name %q", g.name))
		case g.promReg != root.promReg:
			errs = append(errs, fmt.Errorf("servers: the root and %q have different registries: "+
				"set the same Options.Registry for all", g.name))
		case g.serves(root.prefix + Path + "/"), g.serves(root.prefix + alias + "/"):
			errs = append(errs, fmt.Errorf("servers: the Prefix %q of %q takes what the root serves", g.prefix, g.name))
		}
	}
	return errors.Join(errs...)
}

// serve serves the gateways, which share a budget. root may be nil.
func (s *Servers) serve(gateways []*Gateway, root *Gateway, shared *budget.Account) {
	now := s.elsewhere(slices.Clone(gateways), root)
	for _, g := range now.list() {
		g.budget.Join(shared)
		g.listed.Store(true)
		// With a longer prefix "/" may be somebody else's: a proxy passes the rest of it to another program.
		isBelow := strings.LastIndexByte(g.prefix, '/') == 0 && g != root || g.prefix == ""
		g.leadsToList.Store(len(now.list()) > 1 && isBelow)
	}
	s.now.Store(now)
}

// elsewhere returns what serves the gateways.
func (s *Servers) elsewhere(all []*Gateway, root *Gateway) *served {
	f := all[0].now.Load().checks
	n := &served{all: all, root: root, checks: f}
	message := func(r *http.Request) string {
		shown := shownTo(newSender(r), n.list())
		text := routeList(shown)
		if len(shown) > 0 && isRoot(r) && all[0].now.Load().showsPage(r) {
			text += "; open this URL in a browser for a page of them"
		}
		return text
	}
	n.elsewhere = f.Elsewhere(message, all[0].plainLog, s.unserved)
	return n
}

func (s *Servers) list() []*Gateway { return s.now.Load().list() }

// list returns all gateways, the root first.
func (n *served) list() []*Gateway {
	if n.root == nil {
		return n.all
	}
	return append([]*Gateway{n.root}, n.all...)
}

// checkServers returns an error for each fault of gateways that are to serve together.
func checkServers(gateways []*Gateway) error {
	if len(gateways) == 0 {
		return errors.New("servers: there is nothing to serve")
	}
	var errs []error
	for i, g := range gateways {
		if g.name == "" {
			errs = append(errs, fmt.Errorf("servers: the gateway with the prefix %q has no Name", g.prefix))
		}
		if g.promReg != gateways[0].promReg {
			errs = append(errs, fmt.Errorf("servers: %q and %q have different registries: "+
				"set the same Options.Registry for all", g.name, gateways[0].name))
		}
		for _, other := range gateways[:i] {
			errs = append(errs, collision(g, other))
		}
	}
	return errors.Join(errs...)
}

// maxServed bounds the servers that the answer to an unknown path lists.
const maxServed = 16

// routeList returns the answer to an unknown path: the paths of servers.
func routeList(gateways []*Gateway) string {
	if len(gateways) == 0 {
		return "no such route: there are several servers, each at its own path, and none for this request"
	}
	var b strings.Builder
	b.WriteString("no such route: there are several servers, each at its own path: ")
	for i, g := range gateways[:min(len(gateways), maxServed)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(g.prefix + Path)
	}
	if more := len(gateways) - maxServed; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// collision returns an error if two gateways have the same name or overlapping
// prefixes.
func collision(a, b *Gateway) error {
	switch {
	case a.name == b.name:
		return fmt.Errorf("servers: two gateways have the Name %q", a.name)
	case a.serves(b.prefix + "/"), b.serves(a.prefix + "/"):
		return fmt.Errorf("servers: the Prefix %q of %q and %q of %q overlap", a.prefix, a.name, b.prefix, b.name)
	}
	return nil
}

// serves reports whether a path is below the gateway's prefix.
func (g *Gateway) serves(path string) bool {
	rest, ok := strings.CutPrefix(path, g.prefix)
	return ok && strings.HasPrefix(rest, "/")
}

// ServeHTTP serves the routes of each gateway under its prefix.
func (s *Servers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.now.Load()
	for _, g := range n.all {
		if g.serves(r.URL.Path) {
			g.ServeHTTP(w, r)
			return
		}
	}
	if n.root != nil && n.root.now.Load().hasRoute(tidy(r)) {
		n.root.ServeHTTP(w, r)
		return
	}
	if n.checks != n.all[0].now.Load().checks { // it has been reconfigured
		changed := s.elsewhere(n.all, n.root)
		s.now.CompareAndSwap(n, changed)
		n = changed
	}
	if n.all[0].now.Load().listed(w, r, n.list()) {
		return
	}
	n.elsewhere.ServeHTTP(w, r)
}

// Start calls Gateway.Start for each gateway.
func (s *Servers) Start() {
	for _, g := range s.list() {
		g.Start()
	}
}

// Ready returns the result of Gateway.Ready for each server, by name. It calls them
// at the same time. ctx and the initialization timeout of each bound the wait; once one
// server is ready, the others have another half a second.
func (s *Servers) Ready(ctx context.Context) map[string]error {
	all := s.list()
	byName := make(map[string]error, len(all))
	for i, err := range readyAll(ctx, all) {
		byName[all[i].name] = err
	}
	return byName
}

// readyAll returns the result of Ready for each gateway.
func readyAll(ctx context.Context, all []*Gateway) []error {
	asking, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	results := make([]error, len(all))
	var wg sync.WaitGroup
	for i, g := range all {
		wg.Go(func() {
			results[i] = g.Ready(asking)
			if results[i] == nil {
				time.AfterFunc(readyGrace, func() { stop(handshake.ErrStarting) })
			}
		})
	}
	wg.Wait()
	return results
}

// ServerSnapshot is the snapshot of a connection, with what is known of its server. Its fields are those of
// /connections, which version 1 does not promise.
type ServerSnapshot struct {
	// Server is Options.Name.
	Server string `json:"server,omitempty"`
	// Tools is the size of the server's list of tools, once a client has read it.
	Tools *ToolList `json:"tools,omitempty"`
	// Members are the connections of the members of a view that this connection has. Version 1 does not promise them.
	Members []MemberConnection `json:"members,omitempty"`
	connstate.Snapshot
}

// ToolList is the size of a server's list of tools: models read all of it. Version 1 does not promise its fields.
type ToolList struct {
	Tools                 int `json:"tools"`
	DescriptionCharacters int `json:"descriptionCharacters"`
	LongestName           int `json:"longestName"` // in characters
}

// Snapshot returns a snapshot of each open connection, in no order.
func (s *Servers) Snapshot() []ServerSnapshot { return snapshotsOf(s.list()) }

// snapshotsOf returns the connections of gateways, each with the name of its server and the size of its lists.
func snapshotsOf(all []*Gateway) []ServerSnapshot {
	snapshots := []ServerSnapshot{}
	for _, g := range all {
		tools := (*ToolList)(g.now.Load().supplier.Tools())
		for _, one := range g.Snapshot() {
			snapshots = append(snapshots, ServerSnapshot{Server: g.name, Tools: tools, Snapshot: one})
		}
	}
	addMembers(snapshots)
	return snapshots
}

// Drain drains each gateway; see Gateway.Drain.
func (s *Servers) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	for _, g := range s.list() {
		g.Drain()
	}
}

// Shutdown shuts all gateways down at the same time; see Gateway.Shutdown. Those of views come first: what they ask
// their members is answered before. The error names the servers that did not finish before ctx ended.
func (s *Servers) Shutdown(ctx context.Context) error {
	s.Drain() // no other gateway follows
	all := s.list()
	errs := make([]error, len(all))
	var views, wg sync.WaitGroup
	ended := make(chan struct{})
	for i, g := range all {
		group, after := &wg, (<-chan struct{})(ended)
		if g.view() != nil {
			group, after = &views, nil
		}
		group.Go(func() {
			if err := g.shutdown(ctx, after); err != nil {
				errs[i] = fmt.Errorf("server %q: %w", g.name, err)
			}
		})
	}
	views.Wait()
	close(ended)
	wg.Wait()
	return errors.Join(errs...)
}
