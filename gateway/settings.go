package gateway

import (
	"cmp"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/signedid"
	"github.com/mcp-sse/mcp-sse/internal/streamable"
	process "github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Defaults returns the documented default of every option. A field that is zero here
// is off, unlimited or empty by default, except three: Transports are TransportSSE and TransportStreamable,
// IdleTimeout depends on the transport, and Warm on the server. The Logger is one that discards all lines: New
// takes a nil Logger for the same.
func Defaults() Options {
	return Options{
		Sessions:     SessionsPerConnection,
		ErrorDetails: ErrorDetailsAuto,
		Page:         PageAuto,

		InitializationTimeout: 5 * time.Second,
		StartTimeout:          60 * time.Second,
		HeartbeatInterval:     15 * time.Second,
		RequestTimeout:        60 * time.Second,

		MaxConnections:  10_000,
		ConnectRate:     50,
		MaxMessageBytes: 4 << 20,

		Logger: slog.New(slog.DiscardHandler),
	}
}

// settings are the options of a Gateway with their defaults, and the bounds that follow
// from them or are the same for all gateways.
type settings struct {
	Options

	Replicas httpcheck.Cluster // of Options.Cluster; nil: there are none

	MaxRequestTimeout time.Duration // of a request with progress
	InitializeTimeout time.Duration // of a client's own initialize, failed starts included
	StreamTimeout     time.Duration // the idle timeout of HTTP+SSE; 0: never
	SessionTimeout    time.Duration // the idle timeout of Streamable HTTP; negative: never
	AnnounceDelay     time.Duration // between the endpoint and the mcp-response events
	SlowRequest       time.Duration // the duration from which a request is logged as slow

	MaxHandshakeAttempts int // in a row, after which a connection gives up
	MaxSessions          int // sessions with the server; below 1: unlimited
	ConnectBurst         int
	Boots                bool // the server is a process, also if up is no upstream.Command
	WarmFollowsUse       bool // Warm is the default: with a memory it follows use

	// Of connections; 0: as package connstate has it.
	GateQueue, MaxPending, OutboxBytes int

	MaxHeldBytes int64 // bodies that are being read, messages that wait, and events that are kept
}

// newSettings returns the settings that follow from o in front of the server that up
// reaches.
func newSettings(o Options, up upstream.Upstream) settings {
	d := Defaults()
	o.Sessions = cmp.Or(o.Sessions, d.Sessions)
	o.ErrorDetails = cmp.Or(o.ErrorDetails, d.ErrorDetails)
	o.Page = cmp.Or(o.Page, d.Page)
	o.InitializationTimeout = cmp.Or(o.InitializationTimeout, d.InitializationTimeout)
	o.StartTimeout = cmp.Or(o.StartTimeout, d.StartTimeout)
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, d.HeartbeatInterval)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, d.RequestTimeout)
	o.MaxConnections = cmp.Or(o.MaxConnections, d.MaxConnections)
	o.ConnectRate = cmp.Or(o.ConnectRate, d.ConnectRate)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, d.MaxMessageBytes)
	o.Logger = cmp.Or(o.Logger, d.Logger)
	if o.Transports == nil {
		o.Transports = []Transport{TransportSSE, TransportStreamable}
	}
	if known := o.known(); known != "" {
		o.Logger = o.Logger.With("server", known)
	}

	followsUse := o.Warm == 0 && o.wantsWarm(up)
	if followsUse {
		o.Warm = 1
	}
	o.Warm = max(0, o.Warm)
	if o.Remember != nil {
		r := *o.Remember
		r.For = cmp.Or(r.For, 24*time.Hour)
		r.ProcessIdle = cmp.Or(r.ProcessIdle, 10*time.Minute)
		o.Remember = &r
		o.program.LockDir = cmp.Or(o.program.LockDir, r.Dir)
	}

	s := settings{
		Options:           o,
		Replicas:          httpcheck.ClusterOf(o.Cluster),
		WarmFollowsUse:    followsUse,
		MaxRequestTimeout: 10 * o.RequestTimeout,
		InitializeTimeout: min(50*time.Second, 3*o.StartTimeout), // SDKs give up after 60 s, and then show no reason
		StreamTimeout:     max(0, o.IdleTimeout),
		SessionTimeout:    cmp.Or(o.IdleTimeout, 10*time.Minute),
		AnnounceDelay:     min(100*time.Millisecond, o.InitializationTimeout/2),
		SlowRequest:       5 * time.Second,

		MaxHandshakeAttempts: 5,
		ConnectBurst:         int(math.Ceil(2 * o.ConnectRate)),
		MaxHeldBytes:         512 << 20,
	}
	if o.MaxConnections > 0 {
		s.MaxSessions = o.MaxConnections + o.Warm
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 { // GOMEMLIMIT
		s.MaxHeldBytes = limit / 4
	}
	return s
}

// wantsWarm reports whether a server is kept warm by default: where each connection gets a
// child process of its own that needs nothing of its client, because a boot takes longer
// than some clients wait for the tools.
func (o *Options) wantsWarm(up upstream.Upstream) bool {
	child, ok := up.(process.Command)
	ofAnyClient := child.PrincipalEnv == "" && o.PassRequest == nil && len(o.ForwardHeaders) == 0
	servesStdio := slices.Contains(o.Transports, TransportStdio) // there is one client, which takes its server at once
	return ok && o.Sessions == SessionsPerConnection && ofAnyClient && !servesStdio
}

// known returns what people call the server; empty: only the server knows.
func (o *Options) known() string { return cmp.Or(o.Name, o.Title) }

func (s *settings) limits() connstate.Limits {
	return connstate.Limits{
		MaxConnections: s.MaxConnections, MaxPerIP: s.MaxConnectionsPerIP,
		Rate: s.ConnectRate, Burst: s.ConnectBurst,
	}
}

// connections returns the options of a gateway's connections. The ids are signed for the name of the server, so that
// those of one server are unknown to another.
func (s *settings) connections(m *metrics.Metrics, account *budget.Account) connstate.Options {
	audit := s.Audit
	if audit != nil {
		audit = audit.With("server", s.Name)
	}
	replica := "" // the process chooses
	if s.Replicas != nil {
		replica = s.Replicas.ID()
	}
	opts := connstate.Options{
		GateQueue: s.GateQueue, MaxPending: s.MaxPending, OutboxBytes: s.OutboxBytes,
		GateTimeout: s.InitializationTimeout, RestTimeout: s.RequestTimeout,
		AnnounceDelay: s.AnnounceDelay, SlowRequest: s.SlowRequest,
		IDs: signedid.New(s.IDKey, s.Name, replica), Clustered: s.Replicas != nil, Budget: account,
		Logger: s.Logger, Audit: audit, Metrics: m, Server: s.Name,
	}
	if s.TracerProvider != nil {
		opts.Tracer = s.TracerProvider.Tracer("github.com/mcp-sse/mcp-sse",
			trace.WithInstrumentationVersion(buildinfo.Read().Version))
	}
	return opts
}

// serves reports whether a transport is served.
func (o *Options) serves(transport Transport) bool { return slices.Contains(o.Transports, transport) }

// transportNames returns the words of the transports, as metrics have them.
func (o *Options) transportNames() (names []string) {
	for _, transport := range o.Transports {
		names = append(names, transport.String())
	}
	return names
}

func (s *settings) streamable(m *metrics.Metrics) streamable.Options {
	return streamable.Options{
		Options: s.checks(m.Over(TransportStreamable.String())), RequireInitialize: s.NoAutoInitialize,
		SessionTimeout: s.SessionTimeout, MaxQueuedBytes: s.OutboxBytes, MaxKeptBytes: int(s.MaxHeldBytes / 8),
	}
}

func (s *settings) sse(m *metrics.Metrics) sse.Options {
	opts := sse.Options{Options: s.checks(m.Over(TransportSSE.String())), SinglePath: s.SinglePath}
	if s.NoAutoInitialize { // a plain transport sends only standard events
		opts.Quiet, opts.Dialect = true, connstate.Dialect(connstate.EventMessage)
	}
	return opts
}

// checks returns what the HTTP transports have in common.
func (s *settings) checks(m *metrics.Metrics) httpcheck.Options {
	opts := httpcheck.Options{
		HeartbeatInterval: s.HeartbeatInterval, ConnectionTimeout: s.StreamTimeout,
		MaxMessageBytes: s.MaxMessageBytes,
		TrustedProxies:  s.TrustedProxies, AllowedOrigins: s.AllowedOrigins,
		AllowedHosts: s.AllowedHosts, PublicHost: s.PublicHost,
		Reauthenticate: s.Reauthenticate, LocalOnly: s.program.LocalOnly,
		Authenticate: s.Authenticate, Cluster: s.Replicas, Server: s.Name, ForwardHeaders: s.ForwardHeaders,
		Logger: s.Logger, Metrics: m,
	}
	if s.PassRequest != nil {
		opts.PassRequest, opts.RequestHeaders, opts.RequestContext = true, s.PassRequest.Headers, s.PassRequest.Context
	}
	return opts
}
