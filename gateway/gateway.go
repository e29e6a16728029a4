package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/sse"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Gateway serves one MCP server to many clients. It is an http.Handler, safe
// for concurrent use. Make it with New and end it with Shutdown.
type Gateway struct {
	opts      Options
	up        upstream.Upstream
	log       *slog.Logger
	plainLog  *slog.Logger // without the attribute server; may be nil
	metrics   *metrics.Metrics
	promReg   *prometheus.Registry
	registry  *connstate.Registry
	transport *sse.Handler
	params    json.RawMessage // of the synthetic initialize; nil: there is none
	health    health
	startLog  startLog
	moved     func(from, to startState) // for tests
	// oddVersion is the unknown protocol version that was warned of last.
	oddVersion atomic.Pointer[string]

	repeatable multiplex.Repeatable // what may be asked twice
	nameless   *throttle.Line       // the warning about answers without ids
	shared     *shared              // nil: each connection has its own session
	pool       *pool                // nil: no session is started ahead
	started    sync.Once            // what Start does

	// life ends when Shutdown has closed the connections; end ends it.
	life context.Context
	end  context.CancelFunc
	// starts holds a token for each start that runs.
	starts chan struct{}
	// boots: a start keeps its turn until the server has answered, because a
	// process is busy meanwhile.
	boots bool
	// sessions counts the goroutines that start and end sessions.
	sessions sync.WaitGroup
}

// New returns a Gateway in front of the server that up reaches. It starts
// nothing: sessions are started by connections, by readiness probes and by Start.
// It fails when an option is wrong, and says which.
func New(up upstream.Upstream, opts Options) (*Gateway, error) {
	if up == nil {
		return nil, errors.New("gateway: no upstream: there is nothing to serve")
	}
	plainLog := opts.Logger
	opts = opts.withDefaults()
	if err := opts.validate(up); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g := &Gateway{plainLog: plainLog, opts: opts, up: up, log: opts.Logger, promReg: opts.Registry, nameless: multiplex.NewNameless()}
	g.life, g.end = context.WithCancel(context.Background())
	if g.promReg == nil {
		g.promReg = metrics.NewRegistry()
	}
	var unregistered error
	g.metrics, unregistered = metrics.Named(g.promReg, opts.Name)
	build := buildinfo.Read()
	g.metrics.BuildInfo(build.Version, build.Revision, build.GoVersion)
	if !opts.NoAutoInitialize {
		g.params = handshake.Synthetic(handshake.ClientInfo{Name: "mcp-sse", Version: build.Version}, opts.Capabilities)
	}
	_, g.boots = up.(upstream.Command)
	if o, ok := up.(observable); ok {
		g.up = o.Observed(slog.New(children{g.log.Handler(), &g.startLog}), g.metrics)
	}
	g.registry = connstate.NewRegistry(opts.limits(), opts.connections(g.metrics))
	var err error
	g.transport, err = sse.New(g, g.registry, opts.transport(g.metrics))
	if err = errors.Join(unregistered, err); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g.starts = make(chan struct{}, opts.StartConcurrency)
	switch {
	case opts.Sessions == SessionsShared:
		g.shared = newShared(g, opts.SessionsSize)
	case opts.Warm > 0:
		g.pool = &pool{g: g, size: opts.Warm}
	}
	return g, nil
}

// Start starts the servers and shared sessions that Options.Warm asks for. The
// first connection starts them too; call Start earlier to have them ready for that
// one. Start does not wait for them, and is idempotent.
func (g *Gateway) Start() {
	g.started.Do(func() {
		if g.shared != nil && g.opts.Warm > 0 {
			g.shared.start()
		}
		g.pool.refill()
	})
}

// observable is an upstream that can use the gateway's logger and metrics.
type observable interface {
	Observed(*slog.Logger, *metrics.Metrics) upstream.Upstream
}

// ServeHTTP serves GET /sse and POST /sse/{id}/message under Options.Prefix.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.transport.ServeHTTP(w, r) }

// Accept starts the session of a new connection. It implements sse.Backend.
func (g *Gateway) Accept(c *connstate.Connection) connstate.Handler {
	b := newBridge(g, c)
	g.Start()
	return b
}

// Snapshot returns what is known of each open connection, in no order.
func (g *Gateway) Snapshot() []connstate.Snapshot {
	all := g.registry.All()
	snapshots := make([]connstate.Snapshot, len(all))
	for i, c := range all {
		snapshots[i] = c.Snapshot()
	}
	return snapshots
}
