package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	process "github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// ErrFixed reports an option that Reconfigure cannot change: another Gateway must serve in
// the place of this one.
var ErrFixed = errors.New("cannot change while the gateway serves")

// errEnding refuses a change during a shutdown.
var errEnding = errors.New("the gateway is shutting down")

// Reconfigure replaces the server and the options of g while it serves. opts replace all options: a field that is
// left out goes back to its default, Authenticate too, so that a gateway that had one then serves anybody. Keep the
// Options that New got, change fields, and pass all of them.
//
// Reconfigure fails, and changes nothing, if options are wrong; the error names them all. It fails with an ErrFixed
// if one of Prefix, Transports, IDKey, Cluster, NoAutoInitialize, Sessions, SinglePath, Name,
// Logger, Audit, TracerProvider or Registry differs, or if PassRequest, or a PrincipalEnv, comes or
// goes.
//
// Connections stay open. Another Select holds for them at once, and they get list_changed for what it concerns, if the
// server has promised that. A connection, a POST, a start or a session that begins after Reconfigure has the
// new options. So a connection keeps its HeartbeatInterval, IdleTimeout and
// InitializationTimeout at the gate, and a session its RequestTimeout and MaxInFlight. A
// limit that open connections exceed closes none.
//
// If up is nil, or equal to that of before, sessions go on: a Command or a URL is compared
// by its fields, any other kind by identity, and a function differs from each.
//
// If up is another server, or if ForwardHeaders come or go, later starts use the new server. Each connection gets a
// session with it at once, also a connection whose starts have failed too often. With NoAutoInitialize the
// connection first waits for the answer to an initialize that its client has sent. The session before ends when its
// answers have arrived, after RequestTimeout at the latest. As after a loss of the server, the gateway restores the
// state of clients and sends list_changed, but counts no loss. The new server
// counts as not ready until a start of it has worked.
func (g *Gateway) Reconfigure(up upstream.Upstream, opts Options) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.now.Load()
	if up == nil {
		up = was.up
	}
	n, err := g.prepare(up, opts)
	if err == nil {
		err = was.fixed(n, g.plainLog == opts.Logger)
	}
	if err == nil && g.ending {
		err = errEnding
	}
	if err != nil {
		return err
	}
	g.replace(was, n)
	return nil
}

// replace makes n, which is valid, what g serves.
func (g *Gateway) replace(was, n *serving) {
	n.opts.Logger = was.opts.Logger
	n.checks = httpcheck.New(n.opts.checks(g.metrics))
	if was.sse != nil {
		n.sse = was.sse.With(n.opts.sse(g.metrics))
	}
	if was.mcp != nil {
		n.mcp = was.mcp.With(g.streamable(n))
	}
	supply := g.supply(n)
	other := !sameServer(was.up, n.up) || supply.Forwards != g.supply(was).Forwards
	n.supplier = was.supplier
	if other {
		n.supplier = was.supplier.Successor(n.up, supply)
	} else {
		n.supplier.Reconfigure(supply)
	}
	g.metrics.MaxConnections(n.opts.MaxConnections)
	g.reconfigureConnections(&n.opts)
	g.now.Store(n)
	g.measureMembers()
	if kinds := was.selectionChanges(n); len(kinds) > 0 {
		was.supplier.TellSelectionChanged(kinds)
	}
	if !other {
		return
	}
	was.supplier.Retire()
	g.metrics.ServerReplaced()
	if n.mcp != nil {
		n.mcp.ServerReplaced()
	}
	n.opts.Logger.Info("server replaced", "connections", g.registry.Len())
}

// reconfigureConnections gives the connections that are opened from now on these settings, with mu held.
func (g *Gateway) reconfigureConnections(s *settings) {
	g.registry.Reconfigure(s.limits(), s.InitializationTimeout, s.RequestTimeout, s.AnnounceDelay)
}

// fixed returns an ErrFixed for each option that differs in n and cannot change.
func (was *serving) fixed(n *serving, sameLogger bool) error {
	a, b := &was.opts, &n.opts
	var errs []error
	for _, option := range []struct {
		name string
		same bool
	}{
		{"Name", a.Name == b.Name},
		{"Prefix", a.Prefix == b.Prefix},
		{"Transports", slices.Equal(a.Transports, b.Transports)},
		{"IDKey", bytes.Equal(a.IDKey, b.IDKey)},
		{"Cluster", isSame(a.Cluster, b.Cluster)},
		{"NoAutoInitialize", a.NoAutoInitialize == b.NoAutoInitialize},
		{"Sessions", a.Sessions == b.Sessions},
		{"SinglePath", a.SinglePath == b.SinglePath},
		{"PassRequest", (a.PassRequest == nil) == (b.PassRequest == nil)},
		{"Logger", sameLogger},
		{"Audit", a.Audit == b.Audit},
		{"TracerProvider", isSame(a.TracerProvider, b.TracerProvider)},
		{"Registry", isSame(a.Registry, b.Registry)},
	} {
		if !option.same {
			errs = append(errs, &OptionError{Option: option.name, Problem: ErrFixed.Error(), Err: ErrFixed})
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("gateway: %w", errors.Join(errs...))
}

// isSame reports whether two values of an interface are the same, also if their type cannot be compared with ==.
func isSame(a, b any) bool {
	if !reflect.ValueOf(a).Comparable() || !reflect.ValueOf(b).Comparable() {
		return reflect.DeepEqual(a, b)
	}
	return a == b
}

// sameServer reports whether two upstreams are known to reach the same server in the same way.
func sameServer(a, b upstream.Upstream) bool {
	switch a.(type) {
	case process.Command, remote.URL:
		return reflect.DeepEqual(a, b)
	}
	return reflect.ValueOf(a).Comparable() && a == b
}
