package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// readyGrace is how long Servers.Ready waits for the other servers once one is ready: a
// server that hangs must not make a probe of all time out.
const readyGrace = 500 * time.Millisecond

// Servers serves several MCP servers, each by a Gateway of its own under its own
// prefix. They share the routes for operators, the registry of metrics and the bound of the
// bytes that wait, and nothing else: a server that is down, full or slow does not affect
// the others.
// Servers is an http.Handler, safe for concurrent use. Make it with NewServers and
// end it with Shutdown.
type Servers struct {
	all       []*Gateway
	elsewhere http.Handler // serves requests that reach no gateway
}

// NewServers returns Servers of the gateways. Each needs its own Name, a Prefix that
// does not overlap with another, and the same Registry as all others. Otherwise
// NewServers fails, with an error for each fault. Call it before the gateways serve.
func NewServers(gateways ...*Gateway) (*Servers, error) {
	if len(gateways) == 0 {
		return nil, errors.New("servers: there is nothing to serve")
	}
	var errs []error
	for i, g := range gateways {
		if g.opts.Name == "" {
			errs = append(errs, fmt.Errorf("servers: the gateway with the prefix %q has no Name", g.opts.Prefix))
		}
		if g.promReg != gateways[0].promReg {
			errs = append(errs, fmt.Errorf("servers: %q and %q have different registries: set the same Options.Registry for all", g.opts.Name, gateways[0].opts.Name))
		}
		for _, other := range gateways[:i] {
			errs = append(errs, collision(g, other))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	accounts := make([]*budget.Account, len(gateways))
	for i, g := range gateways {
		accounts[i] = g.held
	}
	budget.Join(accounts...)
	unserved, err := metrics.Unserved(gateways[0].promReg)
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	first := gateways[0]
	return &Servers{all: gateways, elsewhere: first.front.Elsewhere(routeList(gateways), first.plainLog, unserved)}, nil
}

// maxServed bounds the servers that the answer to an unknown path lists.
const maxServed = 16

// routeList returns the answer to an unknown path: the paths of the servers.
func routeList(gateways []*Gateway) string {
	var b strings.Builder
	b.WriteString("no such route: there are several servers, each at its own path: ")
	for i, g := range gateways[:min(len(gateways), maxServed)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(g.opts.Prefix + Path)
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
	case a.opts.Name == b.opts.Name:
		return fmt.Errorf("servers: two gateways have the Name %q", a.opts.Name)
	case a.holds(b.opts.Prefix + "/"), b.holds(a.opts.Prefix + "/"):
		return fmt.Errorf("servers: the Prefix %q of %q and %q of %q overlap", a.opts.Prefix, a.opts.Name, b.opts.Prefix, b.opts.Name)
	}
	return nil
}

// holds reports whether a path is below the gateway's prefix.
func (g *Gateway) holds(path string) bool {
	rest, ok := strings.CutPrefix(path, g.opts.Prefix)
	return ok && strings.HasPrefix(rest, "/")
}

// ServeHTTP serves the routes of each gateway under its prefix.
func (s *Servers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, g := range s.all {
		if g.holds(r.URL.Path) {
			g.ServeHTTP(w, r)
			return
		}
	}
	s.elsewhere.ServeHTTP(w, r)
}

// Start calls Gateway.Start for each gateway.
func (s *Servers) Start() {
	for _, g := range s.all {
		g.Start()
	}
}

// Ready returns the result of Gateway.Ready for each server, by name. It calls them
// at the same time. ctx and the initialization timeout of each bound the wait; once one
// server is ready, the others have another half a second.
func (s *Servers) Ready(ctx context.Context) map[string]error {
	asking, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	results := make([]error, len(s.all))
	var wg sync.WaitGroup
	for i, g := range s.all {
		wg.Go(func() {
			if results[i] = g.Ready(asking); results[i] == nil {
				time.AfterFunc(readyGrace, func() { stop(sessions.ErrStarting) })
			}
		})
	}
	wg.Wait()
	byName := make(map[string]error, len(s.all))
	for i, g := range s.all {
		byName[g.opts.Name] = results[i]
	}
	return byName
}

// ServerSnapshot is the snapshot of a connection, with what is known of its server.
type ServerSnapshot struct {
	// Server is Options.Name.
	Server string `json:"server,omitempty"`
	// Tools is the size of the server's list of tools, once a client has read it.
	Tools *multiplex.ToolList `json:"tools,omitempty"`
	connstate.Snapshot
}

// Snapshot returns a snapshot of each open connection, in no order.
func (s *Servers) Snapshot() []ServerSnapshot {
	snapshots := []ServerSnapshot{}
	for _, g := range s.all {
		snapshots = append(snapshots, g.namedSnapshot()...)
	}
	return snapshots
}

func (g *Gateway) namedSnapshot() []ServerSnapshot {
	all, tools := g.Snapshot(), g.supplier.Tools()
	named := make([]ServerSnapshot, len(all))
	for i, one := range all {
		named[i] = ServerSnapshot{g.opts.Name, tools, one}
	}
	return named
}

// Drain drains each gateway; see Gateway.Drain.
func (s *Servers) Drain() {
	for _, g := range s.all {
		g.Drain()
	}
}

// Shutdown shuts all gateways down at the same time; see Gateway.Shutdown. The error
// names the servers that did not finish before ctx ended.
func (s *Servers) Shutdown(ctx context.Context) error {
	errs := make([]error, len(s.all))
	var wg sync.WaitGroup
	for i, g := range s.all {
		wg.Go(func() {
			if err := g.Shutdown(ctx); err != nil {
				errs[i] = fmt.Errorf("server %q: %w", g.opts.Name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Abort kills the processes of all servers at once; see Gateway.Abort.
func (s *Servers) Abort() {
	for _, g := range s.all {
		g.Abort()
	}
}
