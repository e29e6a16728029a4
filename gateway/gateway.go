package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Gateway serves one MCP server to many clients. It is an http.Handler, safe
// for concurrent use. Make it with New and end it with Shutdown.
type Gateway struct {
	opts      Options
	up        upstream.Upstream
	log       *slog.Logger
	metrics   *metrics.Metrics
	promReg   *prometheus.Registry
	registry  *connstate.Registry
	transport *sse.Handler
	params    json.RawMessage // of the synthetic initialize; nil: there is none
	health    health

	// sessions counts the goroutines that start and end sessions.
	sessions sync.WaitGroup
}

// New returns a Gateway in front of the server that up reaches. It starts
// nothing: sessions are started by connections, and by readiness probes. It
// fails when an option is wrong, and says which.
func New(up upstream.Upstream, opts Options) (*Gateway, error) {
	if up == nil {
		return nil, errors.New("gateway: no upstream: there is nothing to serve")
	}
	opts = opts.withDefaults()
	g := &Gateway{opts: opts, up: up, log: opts.Logger, promReg: opts.Registry}
	if g.promReg == nil {
		g.promReg = metrics.NewRegistry()
	}
	g.metrics = metrics.New(g.promReg)
	build := buildinfo.Read()
	g.metrics.BuildInfo(build.Version, build.Revision, build.GoVersion)
	if !opts.NoAutoInitialize {
		g.params = handshake.Synthetic(handshake.ClientInfo{Name: "mcp-sse", Version: build.Version}, opts.Capabilities)
	}
	if o, ok := up.(observable); ok {
		g.up = o.Observed(g.log, g.metrics)
	}
	g.registry = connstate.NewRegistry(opts.limits(), opts.connections(g.metrics))
	var err error
	g.transport, err = sse.New(g, g.registry, opts.transport(g.metrics))
	if err = errors.Join(opts.validate(), err); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return g, nil
}

// observable is an upstream that can use the gateway's logger and metrics.
type observable interface {
	Observed(*slog.Logger, *metrics.Metrics) upstream.Upstream
}

// ServeHTTP serves GET /sse and POST /sse/{id}/message under Options.Prefix.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.transport.ServeHTTP(w, r) }

// Accept starts what stands behind a new connection; it makes the Gateway an
// sse.Backend.
func (g *Gateway) Accept(c *connstate.Connection) connstate.Handler { return newBridge(g, c) }

// Snapshot returns what is known of each open connection, in no order.
func (g *Gateway) Snapshot() []connstate.Snapshot {
	all := g.registry.All()
	snapshots := make([]connstate.Snapshot, len(all))
	for i, c := range all {
		snapshots[i] = c.Snapshot()
	}
	return snapshots
}

// open starts one session: dial and handshake, bounded by ctx. The caller, a
// bridge or, with nil, a probe, owns it. The error is a *handshake.Failure.
func (g *Gateway) open(ctx context.Context, params json.RawMessage, b *bridge) (*session, error) {
	conn, err := g.up.Dial(ctx)
	if err != nil {
		return nil, &handshake.Failure{Phase: handshake.PhaseCreation, Details: "the server could not be started", Err: err}
	}
	s := newSession(conn, g.sessionOptions(), b, params)
	if params == nil {
		return s, nil
	}
	if s.result, err = handshake.Run(ctx, s, params); err != nil {
		g.endSession(s, err)
		return nil, err
	}
	return s, nil
}
