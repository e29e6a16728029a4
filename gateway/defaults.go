package gateway

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
	"github.com/mcp-sse/mcp-sse/streamable"
)

// Defaults returns the documented default of every option. A field that is zero here
// is off, unlimited or empty by default.
func Defaults() Options {
	return Options{
		Sessions:         SessionsPerConnection,
		SessionsSize:     1,
		StartConcurrency: 16,
		Retry:            RetrySafe,
		ErrorDetails:     ErrorDetailsAuto,
		Capabilities:     json.RawMessage("{}"),

		InitializationTimeout: 5 * time.Second,
		StartTimeout:          60 * time.Second,
		InitializeTimeout:     50 * time.Second,
		MaxHandshakeAttempts:  5,
		HeartbeatInterval:     15 * time.Second,
		SessionTimeout:        10 * time.Minute,
		ResumeTime:            5 * time.Minute,
		RequestTimeout:        60 * time.Second,
		MaxRequestTimeout:     10 * time.Minute,
		HangTimeout:           30 * time.Second,
		ReadTimeout:           10 * time.Second,
		WriteTimeout:          10 * time.Second,
		AnnounceDelay:         100 * time.Millisecond,
		ReconnectDelay:        time.Second,
		SlowRequest:           5 * time.Second,

		MaxConnections:  10_000,
		MaxSessions:     10_000,
		ConnectRate:     50,
		ConnectBurst:    100,
		MaxHeldBytes:    512 << 20,
		ResumeBytes:     64 << 20,
		MaxMessageBytes: 4 << 20,
		OutboxBytes:     1 << 20,
		GateQueue:       64,
		MaxWaiting:      1024,
		MaxPending:      4096,

		Logger: slog.New(slog.DiscardHandler),
	}
}

// withDefaults returns o with defaults in place of zero fields.
func (o Options) withDefaults() Options {
	defaults := Defaults()
	defaults.MaxRequestTimeout = max(defaults.MaxRequestTimeout, o.RequestTimeout)
	defaults.Transports = []string{TransportSSE}
	if !o.SinglePath {
		defaults.Transports = append(defaults.Transports, TransportStreamable)
	}
	defaults.MaxSessions = defaultSessions(o.MaxConnections, o.Warm)
	fields := reflect.ValueOf(&o).Elem()
	for i, field := range reflect.ValueOf(defaults).Fields() {
		if own := fields.FieldByIndex(i.Index); own.IsZero() {
			own.Set(field)
		}
	}
	if o.Name != "" {
		o.Logger = o.Logger.With("server", o.Name)
	}
	o.Capabilities = jsonrpc.Compact(o.Capabilities)
	return o
}

// defaultSessions returns the default of MaxSessions.
func defaultSessions(maxConnections, warm int) int {
	if maxConnections < 0 {
		return -1
	}
	return cmp.Or(maxConnections, Defaults().MaxConnections) + max(0, warm)
}

func (o Options) limits() connstate.Limits {
	return connstate.Limits{
		MaxConnections: o.MaxConnections, MaxPerIP: o.MaxConnectionsPerIP,
		Rate: o.ConnectRate, Burst: o.ConnectBurst,
	}
}

func (o Options) connections(m *metrics.Metrics, account *budget.Account) connstate.Options {
	return connstate.Options{
		GateQueue: o.GateQueue, GateTimeout: o.InitializationTimeout,
		OutboxBytes: o.OutboxBytes, OutboxWait: o.WriteTimeout,
		AnnounceDelay: o.AnnounceDelay, MaxPending: o.MaxPending, SlowRequest: max(0, o.SlowRequest),
		Budget: account, Logger: o.Logger, Metrics: m,
	}
}

// serves reports whether a transport is served.
func (o *Options) serves(transport string) bool { return slices.Contains(o.Transports, transport) }

func (o Options) streamable(m *metrics.Metrics) streamable.Options {
	opts := streamable.Options{
		Options: o.front(m.Over(TransportStreamable)), RequireInitialize: o.RequireInitialize || o.NoAutoInitialize, AdoptSessions: o.AdoptSessions,
		SessionTimeout: o.SessionTimeout, MaxQueuedBytes: o.OutboxBytes,
	}
	return opts
}

func (o Options) transport(m *metrics.Metrics) sse.Options {
	if o.NoAutoInitialize { // a plain transport sends only standard events
		o.Quiet = true
		if o.EventName == "" {
			o.EventName = connstate.EventMessage
		}
	}
	return sse.Options{
		Options: o.front(m.Over(TransportSSE)), SinglePath: o.SinglePath,
		Quiet: o.Quiet, Dialect: connstate.Dialect(o.EventName),
	}
}

// paths returns the routes of the transports below the prefix.
func (o *Options) paths() (paths []string) {
	if o.serves(TransportSSE) {
		paths = append(paths, "/sse")
	}
	if o.serves(TransportStreamable) {
		paths = append(paths, streamable.Path)
	}
	return paths
}

// front returns what the HTTP transports have in common.
func (o Options) front(m *metrics.Metrics) front.Options {
	return front.Options{
		Served: o.paths(),
		Prefix: o.Prefix, TrustForwardedPrefix: o.TrustForwardedPrefix,
		PassRequest: o.PassRequest, RequestHeaders: o.RequestHeaders, RequestContext: o.RequestContext,
		HeartbeatInterval: o.HeartbeatInterval, ConnectionTimeout: o.ConnectionTimeout,
		ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ReconnectDelay: o.ReconnectDelay, MaxMessageBytes: o.MaxMessageBytes,
		TrustedProxies: o.TrustedProxies, AllowedOrigins: o.AllowedOrigins, AllowedHosts: o.AllowedHosts,
		CORS: o.CORS, Authenticate: o.Authenticate, ForwardHeaders: o.ForwardHeaders, Logger: o.Logger, Metrics: m,
	}
}
