package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/page"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/internal/stdio"
	"github.com/mcp-sse/mcp-sse/internal/streamable"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/internal/upstream/implementation"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	process "github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Gateway serves one MCP server to many clients. It is an http.Handler, safe
// for concurrent use. Make it with New and end it with Shutdown.
type Gateway struct {
	name     string          // Options.Name
	prefix   string          // Options.Prefix
	plainLog *slog.Logger    // Options.Logger, without the attribute server; may be nil
	adjust   func(*settings) // nil: nothing; it is for tests
	metrics  *metrics.Metrics
	promReg  *prometheus.Registry
	budget   *budget.Account
	registry *connstate.Registry
	bridges  bridge.Options          // shared by all bridges
	now      atomic.Pointer[serving] // for all that begins
	detach   func()                  // from the Cluster

	listed      atomic.Bool // a Servers serves it
	leadsToList atomic.Bool // and others beside it, and its page leads to the list of all

	hasLocal atomic.Bool // Dial has been called; written with mu held

	mu     sync.Mutex // held by Reconfigure; guards what follows
	ending bool       // Drain has been called
}

// serving is what Reconfigure replaces: the settings, and what is made of them. It is
// immutable.
type serving struct {
	opts     settings
	up       upstream.Upstream
	checks   *httpcheck.Checker
	sse      *sse.Handler        // nil: not served
	mcp      *streamable.Handler // nil: not served
	page     *page.Page          // nil: nobody may have it
	supplier *handshake.Supplier
	store    *remember.Store  // of the directory of Options.Remember; nil: nothing is remembered
	memory   *remember.Server // what the server said before; nil: nothing is remembered
	locks    *remember.Locks  // of the command; nil: there is none, or no directory for them
	// anyFolder learns what the server says in any folder; nil: that is not known
	anyFolder *handshake.AnyFolder
	selection *bridge.Selection // of Options.Select; nil: everything
	hints     *selection.Hints  // of the tools of the server
}

// New returns a Gateway in front of the server that up reaches. It starts nothing:
// connections, readiness probes and Start start sessions. New fails if options are
// wrong; the error names them all.
func New(up upstream.Upstream, opts Options) (*Gateway, error) {
	return newGateway(up, opts, nil)
}

// newGateway is New. adjust, if not nil, changes the settings; it is for tests.
func newGateway(up upstream.Upstream, opts Options, adjust func(*settings)) (*Gateway, error) {
	if up == nil {
		return nil, errors.New("gateway: no upstream: there is nothing to serve")
	}
	g := &Gateway{name: opts.Name, prefix: opts.Prefix, plainLog: opts.Logger, adjust: adjust, promReg: opts.Registry}
	n, err := g.prepare(up, opts)
	if err != nil {
		return nil, err
	}
	s := &n.opts
	if g.promReg == nil {
		g.promReg = metrics.NewRegistry()
	}
	var unregistered error
	g.metrics, unregistered = metrics.Named(g.promReg, s.Name, s.transportNames()...)
	build := buildinfo.Read()
	g.metrics.BuildInfo(build.Version, build.Revision, build.GoVersion)
	g.budget = budget.New(s.MaxHeldBytes, g.metrics)
	g.metrics.MaxConnections(s.MaxConnections)
	connections := s.connections(g.metrics, g.budget)
	connections.IsView, connections.Called = g.isView, g.called
	g.registry = connstate.NewRegistry(s.limits(), connections)
	if err := errors.Join(unregistered, g.mount(n)); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g.connect(n, build.Version)
	g.now.Store(n)
	g.metrics.MeasureChildren(func() int64 { return g.now.Load().supplier.Memory() })
	g.metrics.MeasureLogin(func() bool { _, is := g.now.Load().needsLogin(); return is })
	g.measureMembers()
	g.attach(s.Replicas)
	return g, nil
}

// attach makes g reachable for the other replicas, until detach is called.
func (g *Gateway) attach(cluster httpcheck.Cluster) {
	g.detach = func() {}
	if cluster != nil {
		g.detach = sync.OnceFunc(cluster.Attach(g.name, httpcheck.Part{
			Handler: g, Has: g.has, Draining: g.registry.Draining, Usage: g.registry.Usage,
			UsedElsewhere: g.registry.UsedElsewhere,
		}))
	}
}

// has reports whether the connection with that id is open here, or a call held under it.
func (g *Gateway) has(id string) bool {
	if c, open := g.registry.Find(id); open {
		return c.State() != connstate.Closed
	}
	mcp := g.now.Load().mcp
	return mcp != nil && mcp.AwaitsInput(id)
}

// prepare returns the settings that follow from opts in front of the server that up reaches.
func (g *Gateway) prepare(up upstream.Upstream, opts Options) (*serving, error) {
	up = implementation.Of(up)
	n := &serving{opts: newSettings(opts, up), up: up}
	if g.adjust != nil {
		g.adjust(&n.opts)
	}
	if err := n.opts.validate(n.up); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	n.selectBy(g.now.Load())
	if command, ok := n.up.(process.Command); ok && command.PrincipalEnv != "" {
		n.opts.PassRequest = &PassRequest{}
	}
	if up, ok := n.up.(identified); ok && (n.remembers() || n.opts.program.LockDir != "") {
		g.identify(n, up.Identity())
	}
	n.anyFolder = n.inAnyFolder()
	pages, err := n.opts.newPage(g.leadsToList.Load)
	n.page = pages
	return n, err
}

// identified is an upstream whose server says the same of itself as long as its identity stays the
// same.
type identified interface{ Identity() remember.Identity }

// movable is an upstream whose server can start in another folder.
type movable interface {
	InEmptyFolder(dir string) upstream.Upstream
}

var (
	_ identified = process.Command{}
	_ movable    = process.Command{}
)

// remembers reports whether anything may be remembered of the server.
func (n *serving) remembers() bool {
	oneAtATime := n.opts.MaxInFlight > 0 // to ask for the lists beside a client's calls would break that
	return n.opts.Remember != nil && !n.opts.NoAutoInitialize && !oneAtATime
}

// identify sets the memory and the locks of a server with that identity, which reads files to be known.
func (g *Gateway) identify(n *serving, identity remember.Identity) {
	if n.opts.program.LockDir != "" {
		n.locks = remember.NewLocks(n.opts.program.LockDir, cmp.Or(identity.Command, identity.Server), n.opts.Logger)
	}
	if !n.remembers() {
		return
	}
	if was := g.now.Load(); was != nil && was.store != nil && was.opts.Remember.Dir == n.opts.Remember.Dir {
		n.store = was.store
	} else {
		n.store = remember.Open(n.opts.Remember.Dir, n.opts.Logger)
	}
	n.memory = n.store.Server(identity)
}

// inAnyFolder returns what learns what the server says in any folder; nil if nothing can be learned.
func (n *serving) inAnyFolder() *handshake.AnyFolder {
	up, ok := n.up.(movable)
	if !ok || n.memory == nil || n.locks == nil {
		return nil
	}
	memory := n.memory.InAnyFolder()
	if memory == nil {
		return nil
	}
	return &handshake.AnyFolder{Memory: memory, In: up.InEmptyFolder, ByItself: n.opts.program.LearnsAnyFolder}
}

// mount makes the transports of a gateway.
func (g *Gateway) mount(n *serving) (err error) {
	n.checks = httpcheck.New(n.opts.checks(g.metrics))
	if n.opts.serves(TransportSSE) {
		n.sse, err = sse.New(backend{g}, g.registry, n.opts.sse(g.metrics))
		if err != nil {
			return err
		}
	}
	if n.opts.serves(TransportStreamable) {
		n.mcp = streamable.New(backend{g}, g.registry, g.streamable(n))
	}
	return err
}

func (g *Gateway) streamable(n *serving) streamable.Options {
	opts := n.opts.streamable(g.metrics)
	opts.Repeatable = func(m *jsonrpc.Message) bool {
		if g.isView() { // what a name leads to depends on the client
			return multiplex.ReadOnly(m.Method)
		}
		return g.now.Load().supplier.Repeatable(m)
	}
	opts.LeaseStream = g.leaseStream
	_, opts.SamePeer = n.up.(process.Command) // a process sees the principal at most
	return opts
}

// connect makes the supplier of sessions with the server, and the options of the bridges.
// version is that of this program.
func (g *Gateway) connect(n *serving, version string) {
	o := &n.opts
	var params json.RawMessage // of the synthetic initialize; nil: there is none
	if !o.NoAutoInitialize {
		params = handshake.Synthetic(handshake.ClientInfo{Name: remember.OwnName, Version: version})
	}
	server := "the server"
	if o.Name != "" { // one of several
		server = fmt.Sprintf("the server %q", o.Name)
	}
	g.bridges = bridge.Options{
		Supplier:  func() *handshake.Supplier { return g.now.Load().supplier },
		Selection: func() *bridge.Selection { return g.now.Load().selection },
		Narrows:   g.searches,
		Times: func() bridge.Times {
			o := &g.now.Load().opts
			return bridge.Times{InitializationTimeout: o.InitializationTimeout,
				InitializeTimeout: o.InitializeTimeout, AnnounceDelay: o.AnnounceDelay}
		},
		Remedy: func(err error) string {
			if remedy := g.now.Load().opts.program.Remedy; remedy != nil {
				return remedy(err)
			}
			return ""
		},
		Server: server, Gateway: o.known(), Params: params, MaxHandshakeAttempts: o.MaxHandshakeAttempts,
		Detailed: g.detailed, Losses: &handshake.OncePerHour{},
		Logger: o.Logger, Limited: throttle.NewLines().Logger(o.Logger), Metrics: g.metrics,
	}
	n.supplier = handshake.NewSupplier(n.up, g.supply(n))
}

// supply returns the options of the supplier.
func (g *Gateway) supply(n *serving) handshake.SupplierOptions {
	o := &n.opts
	_, boots := n.up.(process.Command)
	idle, age := time.Duration(0), time.Duration(0)
	if n.memory != nil {
		idle, age = max(0, o.Remember.ProcessIdle), o.Remember.For
	}
	var offers func(tool json.RawMessage) bool
	if n.selection != nil {
		rules := n.selection.Rules
		offers = func(tool json.RawMessage) bool { return rules.Entry(selection.Tools, tool).Allowed() }
	}
	return handshake.SupplierOptions{
		Offers: offers,
		Memory: n.memory, ProcessIdle: idle, RememberFor: age, Locks: n.locks, AnyFolder: n.anyFolder,
		Name: o.known(), Params: g.bridges.Params, Boots: boots || o.Boots,
		Shared: o.Sessions == SessionsShared, Warm: o.Warm,
		WarmFollowsUse: o.WarmFollowsUse && n.memory != nil, MaxSessions: o.MaxSessions,
		Authenticates: o.Authenticate != nil,
		Forwards:      len(o.ForwardHeaders) > 0 || o.PassRequest != nil || isPerPrincipal(n.up),
		StartTimeout:  o.StartTimeout, InitializationTimeout: o.InitializationTimeout,
		Session: multiplex.Options{
			Server: g.bridges.Server, RequestTimeout: o.RequestTimeout, MaxRequestTimeout: o.MaxRequestTimeout,
			MaxInFlight: max(0, o.MaxInFlight), Logger: o.Logger, Metrics: g.metrics,
		},
	}
}

// isPerPrincipal reports whether a server, or one of a view, is reached with other credentials for each principal.
func isPerPrincipal(up any) bool {
	switch at := up.(type) {
	case remote.URL:
		return at.IsPerPrincipal()
	case *Gateway:
		return isPerPrincipal(at.now.Load().up)
	case composed:
		return slices.ContainsFunc(merge.OfViews.Upstreams(at), isPerPrincipal)
	}
	return false
}

// detailed reports whether a client may see the details of errors. A developer on
// this machine needs them; strangers must not see them.
func (g *Gateway) detailed(client connstate.Client) bool {
	o := &g.now.Load().opts
	return o.ErrorDetails == ErrorDetailsFull ||
		o.ErrorDetails == ErrorDetailsAuto && o.Authenticate == nil && client.Local
}

// Start starts the warm servers or shared sessions that Options.Warm configures. The
// first connection starts them too; call Start earlier to have them ready for it.
// Start does not wait for them, and is idempotent.
func (g *Gateway) Start() { g.now.Load().supplier.Start() }

// Ready returns nil if a session with the server can be started: the last start
// worked, or a probe now does. A gateway that drains is not ready. Concurrent callers
// share one probe, which the start timeout bounds. ctx and the initialization timeout
// bound the wait for it. A remote server that waits for a login is not ready. A view is ready if one of its members is.
func (g *Gateway) Ready(ctx context.Context) error {
	for {
		n := g.now.Load()
		if view := g.view(); view != nil && !g.registry.Draining() {
			return view.Ready(ctx)
		}
		s := n.supplier
		err := s.Ready(ctx)
		if _, is := n.needsLogin(); is && err == nil { // its sessions have the tool login alone
			err = errNeedsLogin
		}
		if s == g.now.Load().supplier {
			return err
		}
	}
}

// ServeStdio serves one client that writes to in and reads from out, such as stdin and
// stdout of this process: one JSON-RPC message on each line, at most Options.MaxMessageBytes long.
//
// It returns when the client has closed in and has its answers, for which ServeStdio waits at most for grace; when a
// Write to out fails; when ctx ends, with its cause; or when the connection is closed. It returns nil for a client
// that left in order, and after Shutdown. A grace of 0 is 15 s. If ServeStdio returns before in has ended, one
// goroutine still reads from in, until its next line or its end. The caller must call Shutdown after it, which also
// ends it.
func (g *Gateway) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, grace time.Duration) error {
	return stdio.Serve(ctx, backend{g}, g.registry, in, out, stdio.Options{
		MaxMessageBytes: int(g.now.Load().opts.MaxMessageBytes), Grace: grace, Metrics: g.metrics,
	})
}

// backend is the gateway as its transports see it: it implements httpcheck.Backend.
type backend struct{ *Gateway }

// Accept makes the bridge of a new connection, which starts its session.
func (g backend) Accept(c *connstate.Connection) connstate.Handler {
	b := g.newBridge(c)
	if g.now.Load().opts.Reauthenticate && c.Client().Transport != connstate.TransportStdio {
		return leased{b, g.keepConnection(c)}
	}
	return b
}

// newBridge makes the bridge of a new connection, which starts its session.
func (g *Gateway) newBridge(c *connstate.Connection) *bridge.Bridge {
	b := bridge.New(c, &g.bridges)
	g.Start()
	return b
}

// Connections returns how many connections are open.
func (g *Gateway) Connections() int { return g.registry.Len() }

// Snapshot returns a snapshot of each open connection, in no order. Its type is that of /connections, which version 1
// does not promise.
func (g *Gateway) Snapshot() []connstate.Snapshot {
	all := g.registry.All()
	snapshots := make([]connstate.Snapshot, len(all))
	for i, c := range all {
		snapshots[i] = c.Snapshot()
	}
	return snapshots
}
