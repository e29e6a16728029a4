package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
)

func (o Options) withDefaults() Options {
	o.InitializationTimeout = cmp.Or(o.InitializationTimeout, 5*time.Second)
	o.StartTimeout = cmp.Or(o.StartTimeout, 60*time.Second)
	o.InitializeTimeout = cmp.Or(o.InitializeTimeout, 50*time.Second)
	o.MaxHandshakeAttempts = cmp.Or(o.MaxHandshakeAttempts, 5)
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, 15*time.Second)
	o.Sessions = cmp.Or(o.Sessions, SessionsPerConnection)
	o.SessionsSize = cmp.Or(o.SessionsSize, 1)
	o.StartConcurrency = cmp.Or(o.StartConcurrency, 16)
	o.Retry = cmp.Or(o.Retry, RetrySafe)
	o.ErrorDetails = cmp.Or(o.ErrorDetails, ErrorDetailsAuto)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 60*time.Second)
	o.MaxRequestTimeout = cmp.Or(o.MaxRequestTimeout, max(10*time.Minute, o.RequestTimeout))
	o.HangTimeout = cmp.Or(o.HangTimeout, 30*time.Second)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 1024)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 10*time.Second)
	o.AnnounceDelay = cmp.Or(o.AnnounceDelay, 100*time.Millisecond)
	o.ReconnectDelay = cmp.Or(o.ReconnectDelay, time.Second)
	o.SlowRequest = cmp.Or(o.SlowRequest, 5*time.Second)
	o.MaxConnections = cmp.Or(o.MaxConnections, 10_000)
	o.ConnectRate = cmp.Or(o.ConnectRate, 50)
	o.ConnectBurst = cmp.Or(o.ConnectBurst, 100)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, 4<<20)
	o.OutboxBytes = cmp.Or(o.OutboxBytes, 1<<20)
	o.GateQueue = cmp.Or(o.GateQueue, 64)
	o.MaxPending = cmp.Or(o.MaxPending, 4096)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Name != "" {
		o.Logger = o.Logger.With("server", o.Name)
	}
	o.Capabilities = jsonrpc.Compact(o.Capabilities)
	return o
}

// validate reports all options that are wrong.
func (o Options) validate() error {
	var errs []error
	positive := func(name string, value float64) {
		if value <= 0 {
			errs = append(errs, fmt.Errorf("%s: must be positive", name))
		}
	}
	positive("InitializationTimeout", float64(o.InitializationTimeout))
	positive("StartTimeout", float64(o.StartTimeout))
	positive("InitializeTimeout", float64(o.InitializeTimeout))
	positive("MaxHandshakeAttempts", float64(o.MaxHandshakeAttempts))
	positive("RequestTimeout", float64(o.RequestTimeout))
	positive("SessionsSize", float64(o.SessionsSize))
	positive("StartConcurrency", float64(o.StartConcurrency))
	positive("MaxWaiting", float64(o.MaxWaiting))
	positive("WriteTimeout", float64(o.WriteTimeout))
	positive("ReconnectDelay", float64(o.ReconnectDelay))
	positive("MaxMessageBytes", float64(o.MaxMessageBytes))
	positive("OutboxBytes", float64(o.OutboxBytes))
	positive("GateQueue", float64(o.GateQueue))
	positive("MaxPending", float64(o.MaxPending))
	positive("ConnectBurst", float64(o.ConnectBurst))
	unlimited := func(name string, value int64) {
		if value < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative; 0 is unlimited", name))
		}
	}
	if o.MaxRequestTimeout < o.RequestTimeout {
		errs = append(errs, fmt.Errorf("%s: must be at least RequestTimeout", "MaxRequestTimeout"))
	}
	if o.AnnounceDelay >= o.InitializationTimeout && o.InitializationTimeout > 0 {
		errs = append(errs, fmt.Errorf("%s: must be less than InitializationTimeout", "AnnounceDelay"))
	}
	unlimited("ConnectionTimeout", int64(o.ConnectionTimeout))
	unlimited("MaxConnectionsPerIP", int64(o.MaxConnectionsPerIP))
	unlimited("MaxInFlight", int64(o.MaxInFlight))
	var object map[string]json.RawMessage
	if len(o.Capabilities) > 0 && (json.Unmarshal(o.Capabilities, &object) != nil || object == nil) {
		errs = append(errs, fmt.Errorf(`%s: must be a JSON object, like {"roots":{}}`, "Capabilities"))
	}
	return errors.Join(append(errs, o.validateSessions()...)...)
}

// validateSessions reports what a mode of sessions cannot keep.
func (o Options) validateSessions() []error {
	var errs []error
	refuse := func(when bool, name, why string) {
		if when {
			errs = append(errs, fmt.Errorf("%s: %s", name, why))
		}
	}
	shared := o.Sessions == SessionsShared
	refuse(!shared && o.Sessions != SessionsPerConnection, "Sessions", `must be "per-connection" or "shared"`)
	refuse(o.Retry != RetrySafe && o.Retry != RetryNever, "Retry", `must be "safe" or "never"`)
	refuse(!slices.Contains([]string{ErrorDetailsAuto, ErrorDetailsFull, ErrorDetailsSafe}, o.ErrorDetails),
		"ErrorDetails", `must be "auto", "full" or "safe"`)
	refuse(o.Warm < 0, "Warm", "must not be negative; 0 is none")
	refuse(o.SessionsSize > 1 && !shared, "SessionsSize", "has no effect without SessionsShared")
	refuse(o.Warm > 0 && len(o.ForwardHeaders) > 0, "Warm", "a server started ahead has no client whose ForwardHeaders it could send")
	refuse(shared && o.NoAutoInitialize, "Sessions", "shared ones need the gateway's own initialize: no NoAutoInitialize")
	refuse(shared && len(o.ForwardHeaders) > 0, "ForwardHeaders", "a shared session cannot send the headers of one client")
	refuse(shared && len(o.Capabilities) > 0 && string(o.Capabilities) != "{}", "Capabilities",
		"must be {} with SessionsShared: a request of the server could not be given to one client")
	refuse(o.Name != "" && !serverName.MatchString(o.Name), "Name", "must match "+serverName.String())
	for _, name := range o.ForwardHeaders {
		if err := CheckHeaderName(name); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", "ForwardHeaders", err))
		}
	}
	return errs
}

// serverName is what a server may be called: it is a part of a path and the value
// of a label.
var serverName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// CheckHeaderName reports why a header cannot be set on the requests to a remote
// server, by its operator or by a client: it is no name, or one that HTTP or MCP
// give a meaning of their own.
func CheckHeaderName(name string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("%.64q is no name of a header", name)
	}
	switch name = http.CanonicalHeaderKey(name); name {
	case "Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host",
		"Keep-Alive", "Last-Event-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
	default:
		if !strings.HasPrefix(name, "Mcp-") {
			return nil
		}
	}
	return fmt.Errorf("the transport sets %s itself", name)
}

func (o Options) limits() connstate.Limits {
	return connstate.Limits{
		MaxConnections: o.MaxConnections, MaxPerIP: o.MaxConnectionsPerIP,
		Rate: o.ConnectRate, Burst: o.ConnectBurst,
	}
}

func (o Options) connections(m *metrics.Metrics) connstate.Options {
	return connstate.Options{
		GateQueue: o.GateQueue, GateTimeout: o.InitializationTimeout,
		OutboxBytes: o.OutboxBytes, OutboxWait: o.WriteTimeout,
		AnnounceDelay: o.AnnounceDelay, MaxPending: o.MaxPending, SlowRequest: max(0, o.SlowRequest),
		Logger: o.Logger, Metrics: m,
	}
}

func (o Options) transport(m *metrics.Metrics) sse.Options {
	if o.NoAutoInitialize { // a plain transport has events of the standard alone
		o.Quiet = true
		if o.EventName == "" {
			o.EventName = connstate.EventMessage
		}
	}
	return sse.Options{
		Prefix: o.Prefix, TrustForwardedPrefix: o.TrustForwardedPrefix,
		Quiet: o.Quiet, Dialect: connstate.Dialect(o.EventName),
		HeartbeatInterval: o.HeartbeatInterval, ConnectionTimeout: o.ConnectionTimeout,
		WriteTimeout: o.WriteTimeout, ReconnectDelay: o.ReconnectDelay, MaxMessageBytes: o.MaxMessageBytes,
		TrustedProxies: o.TrustedProxies, AllowedOrigins: o.AllowedOrigins, AllowedHosts: o.AllowedHosts,
		CORS: o.CORS, Authenticate: o.Authenticate, ForwardHeaders: o.ForwardHeaders, Logger: o.Logger, Metrics: m,
	}
}
