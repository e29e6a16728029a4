package gateway

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The values of Options.Sessions.
const (
	SessionsPerConnection = "per-connection"
	SessionsShared        = "shared"
)

// The values of Options.Retry.
const (
	RetrySafe  = "safe"
	RetryNever = "never"
)

// The values of Options.ErrorDetails.
const (
	ErrorDetailsAuto = "auto"
	ErrorDetailsFull = "full"
	ErrorDetailsSafe = "safe"
)

// Options configure a Gateway. The zero value is the documented default of
// every option; where a limit can be switched off, a negative value does it.
type Options struct {
	// Prefix is put before every route and before the path in the endpoint
	// event: with "/mcp" the stream is at /mcp/sse. Default none. A prefix that
	// http.StripPrefix removes is found without it.
	Prefix string
	// TrustForwardedPrefix puts the X-Forwarded-Prefix header of a request
	// before the path in its endpoint event. Set it only behind a proxy that
	// always sets or removes that header.
	TrustForwardedPrefix bool

	// NoAutoInitialize turns the gateway's own MCP handshake off: a connection
	// is then a plain HTTP+SSE transport of 2024-11-05.
	NoAutoInitialize bool
	// Quiet withholds the connection and mcp-response events from all clients,
	// as ?auto=0 does for one. The handshake is still run.
	Quiet bool
	// EventName is the name of the events that carry responses: "message" or
	// "mcp-response". Default "": decided for each connection.
	EventName string
	// Sessions is who gets a session with the server: SessionsPerConnection, each
	// connection its own, or SessionsShared, all connections the same. Default
	// "per-connection".
	Sessions string
	// SessionsSize is how many shared sessions there are; connections are spread
	// over them. Default 1. Only with SessionsShared.
	SessionsSize int
	// Warm is how many servers are kept started ahead of connections, and not
	// initialized: the handshake is the connection's own. Default 0: none. With
	// SessionsShared, one or more has the shared sessions started ahead. A remote
	// server needs no start, so there is nothing to keep for it but shared sessions.
	Warm int
	// StartConcurrency bounds the starts of sessions that run at a time. Default 16.
	StartConcurrency int
	// Retry says what happens to requests in flight when their session is lost:
	// RetrySafe repeats once, on the new session, those that change nothing,
	// RetryNever answers all with an error. Default "safe".
	Retry string
	// ErrorDetails says what errors tell clients of the server: ErrorDetailsFull its
	// exit status, the last of its stderr, its command or address and what it said
	// when it refused; ErrorDetailsSafe the category alone. The log has all of it.
	// ErrorDetailsAuto is full for clients on this machine while there is no
	// Authenticate, else safe. Why a server is not ready, /readyz tells in full only
	// with ErrorDetailsFull, or to a request that Authenticate accepts. Default
	// "auto".
	ErrorDetails string
	// ForwardHeaders are the names of request headers that a client's GET may
	// hand on to a remote server. Default none. Only per connection.
	ForwardHeaders []string
	// Name names the server where several are served: in logs, and as the label
	// server of all metrics. At most 64 of a-z, 0-9, _ and -, a letter or a digit
	// first. Default none.
	Name string

	// Capabilities are the client capabilities that the gateway's own
	// initialize declares: a JSON object. Default {}.
	Capabilities json.RawMessage

	// InitializationTimeout bounds how long a client's message waits for the
	// handshake. Default 5 s.
	InitializationTimeout time.Duration
	// StartTimeout bounds how long one start of the server may take, handshake
	// included. Default 60 s.
	StartTimeout time.Duration
	// InitializeTimeout bounds how long a client's own initialize waits for the
	// server, failed starts and pauses included. Default 50 s: the SDKs of clients
	// give up after 60 s, and then show no reason.
	InitializeTimeout time.Duration
	// MaxHandshakeAttempts bounds the starts of the server in a row that fail
	// before the connection gives up. Default 5.
	MaxHandshakeAttempts int
	// HeartbeatInterval is the longest silence on a stream before a heartbeat.
	// Default 15 s; negative: no heartbeats.
	HeartbeatInterval time.Duration
	// ConnectionTimeout closes a connection without any POST or request in
	// flight for that long. Default 0: never.
	ConnectionTimeout time.Duration
	// RequestTimeout bounds how long the server may take for one request, or
	// between two reports of its progress. Default 60 s.
	RequestTimeout time.Duration
	// MaxRequestTimeout bounds it whatever progress is reported; never less than
	// RequestTimeout. Default 600 s.
	MaxRequestTimeout time.Duration
	// HangTimeout is the silence of a server that has requests to answer after
	// which it is suspected to hang. A suspect is pinged when nothing is in flight
	// any more, and started anew when it misses two pings. Default 30 s; negative:
	// never.
	HangTimeout time.Duration
	// WriteTimeout bounds how long a client may take to read 64 KiB, and how long a
	// sender waits for room in its outbox while nothing is written. Default 10 s.
	WriteTimeout time.Duration
	// AnnounceDelay is the least time between the endpoint and the mcp-response
	// event. Default 100 ms; negative: none.
	AnnounceDelay time.Duration
	// ReconnectDelay is what the stream tells clients to wait before they
	// reconnect. Default 1 s.
	ReconnectDelay time.Duration
	// SlowRequest is the duration from which a request is logged as slow.
	// Default 5 s; negative: never.
	SlowRequest time.Duration

	// MaxConnections bounds the open connections. Default 10,000; negative:
	// unlimited.
	MaxConnections int
	// MaxConnectionsPerIP bounds those of one client address (of one /64 for
	// IPv6). Default 0: unlimited.
	MaxConnectionsPerIP int
	// ConnectRate bounds new connections a second from one client address
	// (one /64 for IPv6), loopback exempt. Default 50; negative: unlimited.
	ConnectRate float64
	// ConnectBurst is how many may come at once. Default 100.
	ConnectBurst int
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	// Default none.
	TrustedProxies []netip.Prefix

	// MaxMessageBytes bounds the body of a POST. Default 4 MiB.
	MaxMessageBytes int64
	// OutboxBytes bounds what waits to be written to one client. One message
	// larger than it passes alone. Default 1 MiB.
	OutboxBytes int
	// GateQueue bounds the messages of one connection that wait for the
	// handshake. Default 64.
	GateQueue int
	// MaxInFlight bounds the requests of one session that the server works on
	// at a time; more wait in order. Default 0: unlimited; 1 serializes.
	MaxInFlight int
	// MaxWaiting bounds the requests of one session that wait for their turn.
	// Default 1024.
	MaxWaiting int
	// MaxPending bounds the unanswered requests of one connection, waiting ones
	// included. Default 4096.
	MaxPending int

	// AllowedOrigins are the values of the Origin header that are allowed
	// beside the server's own origin: "https://app.example.com", or "*" for any.
	AllowedOrigins []string
	// AllowedHosts are values of the Host header, without port, that are
	// allowed on a loopback address beside loopback names. "*" allows any.
	AllowedHosts []string
	// CORS answers preflights and sets CORS headers for the allowed origins.
	CORS bool
	// Authenticate returns the principal that makes a request, or an error for a
	// 401. A connection belongs to the principal that opened it. Default nil: no authentication. It
	// is called concurrently. See sse.BearerTokens.
	Authenticate func(*http.Request) (principal string, err error)

	// Logger receives the logs. Default nil: silent.
	Logger *slog.Logger
	// Registry receives the metrics. Default nil: they are counted, and served
	// by Admin, but in a registry of the gateway's own.
	Registry *prometheus.Registry
}
