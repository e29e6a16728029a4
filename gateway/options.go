package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/metrics"
)

// The values of Options.Sessions.
const (
	SessionsPerConnection = "per-connection"
	SessionsShared        = "shared"
)

// The values in Options.Transports.
const (
	TransportSSE        = metrics.TransportSSE
	TransportStreamable = metrics.TransportStreamable
	TransportStdio      = metrics.TransportStdio
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

// Options configure a Gateway. A zero field means its default; Defaults returns all
// of them. A negative value switches a limit off, where that is possible.
type Options struct {
	// Prefix is the path before every route and before the path in the endpoint
	// event: with "/mcp" the stream is at /mcp/sse. Default none. The gateway also
	// finds a prefix that http.StripPrefix has removed.
	Prefix string
	// TrustForwardedPrefix puts the X-Forwarded-Prefix header of a request
	// before the path in its endpoint event. Set it only behind a proxy that
	// always sets or removes that header.
	TrustForwardedPrefix bool

	// Transports are those that the gateway serves: TransportSSE is HTTP+SSE at /sse,
	// TransportStreamable Streamable HTTP at /mcp; TransportStdio is for ServeStdio. Default
	// the first two; with SinglePath the first.
	Transports []string
	// RequireInitialize refuses requests over Streamable HTTP without a session, with 400.
	// Otherwise the gateway makes a session for them. NoAutoInitialize implies it.
	RequireInitialize bool
	// AdoptSessions makes a new session for an Mcp-Session-Id that is not known, under
	// that id, for clients that do not initialize again when the gateway was restarted.
	// Otherwise they get 404, as the specification has it.
	AdoptSessions bool

	// NoAutoInitialize turns the gateway's own MCP handshake off: a connection is
	// then a plain HTTP+SSE transport of 2024-11-05.
	NoAutoInitialize bool
	// Quiet withholds the connection and mcp-response events from all clients,
	// as ?auto=0 does for one. The handshake still runs.
	Quiet bool
	// EventName is the name of the events that carry responses: "message" or
	// "mcp-response". Default "": the gateway decides for each connection.
	EventName string
	// Sessions is the mode of sessions with the server. With SessionsPerConnection
	// each connection has its own, with SessionsShared all connections share one, or
	// SessionsSize of them. Default "per-connection".
	Sessions string
	// SessionsSize is the number of shared sessions; connections are spread over
	// them. Default 1. Only with SessionsShared.
	SessionsSize int
	// Warm is the number of servers to keep started ahead of connections. They are
	// not initialized: each connection runs its own handshake. Default 0: none. With
	// SessionsShared, 1 or more starts the shared sessions ahead. A remote server
	// needs no start: for it, Warm needs SessionsShared.
	Warm int
	// StartConcurrency bounds the sessions that start at the same time. Default 16.
	StartConcurrency int
	// Retry controls what happens to requests in flight when their session is lost.
	// RetrySafe repeats those that change nothing, once, on the new session;
	// RetryNever answers all with an error. Default "safe".
	Retry string
	// ErrorDetails controls what errors tell clients about the server.
	// ErrorDetailsFull includes its exit status, the end of its stderr, its command
	// or address, and its reason for a refusal; ErrorDetailsSafe gives only the
	// category. ErrorDetailsAuto is full for clients on this machine if there is no
	// Authenticate, else safe. The log always has everything. /readyz gives the
	// details only with ErrorDetailsFull, or to a request that Authenticate accepts.
	// Default "auto".
	ErrorDetails string
	// SinglePath serves the stream and the messages at one path: any at which the
	// Gateway is mounted, such as one exact pattern of a http.ServeMux. The endpoint is
	// that path, with the connection's id in the query. Not with Prefix. Default false.
	SinglePath bool
	// PassRequest gives a server in this process the values of the context of a client's
	// HTTP request, and its [peer.Peer]: Dial and handlers that belong to a session get
	// those of the GET, handlers of a request those of its POST before them, where the
	// kind of upstream allows. Not with SessionsShared or Warm. A Command with a
	// PrincipalEnv implies it. Default false.
	PassRequest bool
	// RequestHeaders are the names of the headers that the peer has. Default none. Only
	// with PassRequest.
	RequestHeaders []string
	// RequestContext returns the context whose values PassRequest passes on, of each GET
	// and POST that has passed all checks. Its error refuses the request with 404 and its
	// text. The function must be safe for concurrent use. Default nil: the request's own
	// context.
	RequestContext func(*http.Request) (context.Context, error)
	// ForwardHeaders are the names of headers of a client's GET that the gateway
	// sends to a remote server. Default none. Not with SessionsShared.
	ForwardHeaders []string
	// Name is the name of the server if there are several: in logs, and as the label
	// server of all metrics. It has at most 64 characters of a-z, 0-9, _ and -, and
	// begins with a letter or a digit. Default none.
	Name string

	// Capabilities are the client capabilities that the gateway's own initialize
	// declares, as a JSON object. Default {}.
	Capabilities json.RawMessage

	// InitializationTimeout bounds how long a client's message waits for the
	// handshake. Default 5 s.
	InitializationTimeout time.Duration
	// StartTimeout bounds how long one start of the server may take, including the
	// handshake. Default 60 s.
	StartTimeout time.Duration
	// InitializeTimeout bounds how long a client's own initialize waits for the
	// server, including failed starts and pauses. Default 50 s: the SDKs of clients
	// give up after 60 s, and then show no reason.
	InitializeTimeout time.Duration
	// MaxHandshakeAttempts is the number of failed starts in a row after which a
	// connection gives up. Default 5.
	MaxHandshakeAttempts int
	// HeartbeatInterval is the longest silence on a stream before a heartbeat.
	// Default 15 s; negative: no heartbeats.
	HeartbeatInterval time.Duration
	// ConnectionTimeout closes a connection that has had no POST and no request in
	// flight for this long. Default 0: never.
	ConnectionTimeout time.Duration
	// SessionTimeout closes a session of Streamable HTTP that has had no POST, no request in
	// flight and no open GET for this long. One whose id its client never sends back has a
	// minute at most. Default 600 s; negative: never.
	SessionTimeout time.Duration
	// ResumeTime is how long the gateway keeps an event of Streamable HTTP for a client
	// whose stream was cut. Default 300 s.
	ResumeTime time.Duration
	// RequestTimeout bounds how long the server may take for one request, or
	// between two reports of its progress. Default 60 s.
	RequestTimeout time.Duration
	// MaxRequestTimeout bounds how long the server may take for one request, whatever
	// progress it reports. Default 600 s, or RequestTimeout if that is longer.
	MaxRequestTimeout time.Duration
	// HangTimeout is how long a server may be silent with requests in flight before
	// the gateway suspects that it hangs, once one of them has timed out. Requests that
	// their clients cancelled do not count, nor does time in which a client has a
	// request of the server's to answer. The gateway pings a suspect beside its
	// requests, and restarts it if it misses two pings: each after 5 s if the server has
	// no request in flight, else after RequestTimeout. Default 30 s; negative: never.
	HangTimeout time.Duration
	// ReadTimeout bounds how long a client may take to send the body of a POST.
	// Default 10 s.
	ReadTimeout time.Duration
	// WriteTimeout bounds how long a client may take to read 64 KiB, and how long a
	// message waits for room in its outbox while nothing is written; while something
	// is, at most three times as long. Default 10 s.
	WriteTimeout time.Duration
	// AnnounceDelay is the least time between the endpoint event and the
	// mcp-response event. Default 100 ms; negative: none.
	AnnounceDelay time.Duration
	// ReconnectDelay is how long the stream tells clients to wait before they
	// reconnect. Default 1 s.
	ReconnectDelay time.Duration
	// SlowRequest logs requests that take at least this long as slow. Default 5 s;
	// negative: never.
	SlowRequest time.Duration

	// MaxConnections bounds the open connections. Default 10,000; negative:
	// unlimited.
	MaxConnections int
	// MaxConnectionsPerIP bounds the open connections from one client address (one
	// /64 for IPv6). Default 0: unlimited.
	MaxConnectionsPerIP int
	// MaxSessions bounds the sessions with the server, from before their start until
	// they have ended: a child process counts until it is reaped. Further starts wait.
	// Default 10,000; if MaxConnections or Warm is set, their sum; negative: unlimited.
	MaxSessions int
	// ConnectRate bounds new connections a second from one client address (one /64
	// for IPv6). Loopback addresses are exempt. Default 50; negative: unlimited.
	ConnectRate float64
	// ConnectBurst is how many new connections may come at once within ConnectRate.
	// Default 100.
	ConnectBurst int
	// TrustedProxies are the networks whose X-Forwarded-For the gateway believes.
	// Default none.
	TrustedProxies []netip.Prefix

	// MaxHeldBytes bounds the bytes that wait in the gateway: bodies that are being
	// read, and messages that wait for a session, a server or a client. Over it new
	// requests and connections are refused; what has begun goes on. Servers have one
	// bound for all. Default 512 MiB; negative: unlimited.
	MaxHeldBytes int64

	// ResumeBytes bounds the events that the gateway keeps for clients whose stream was
	// cut, of all sessions of Streamable HTTP. Default 64 MiB; negative: none are kept.
	ResumeBytes int64

	// MaxMessageBytes bounds the body of a POST. Default 4 MiB.
	MaxMessageBytes int64
	// OutboxBytes bounds the messages that wait to be written to one client. A
	// larger message passes alone. Default 1 MiB.
	OutboxBytes int
	// GateQueue bounds the messages of one connection that wait for the
	// handshake. Default 64.
	GateQueue int
	// MaxInFlight bounds the requests of one session that the server works on at
	// the same time. More wait in order; 1 serializes them. Default 0: unlimited.
	MaxInFlight int
	// MaxWaiting bounds the requests of one session that wait because of
	// MaxInFlight. Default 1024.
	MaxWaiting int
	// MaxPending bounds the unanswered requests of one connection, including those
	// that wait. Default 4096.
	MaxPending int

	// AllowedOrigins are the values of the Origin header to allow beside the
	// server's own origin, such as "https://app.example.com"; "*" allows any.
	AllowedOrigins []string
	// AllowedHosts are the values of the Host header, without port, to allow on a
	// loopback address beside loopback names; "*" allows any.
	AllowedHosts []string
	// CORS answers preflights and sets CORS headers for the allowed origins.
	CORS bool
	// Authenticate returns the principal that makes a request, or an error for a
	// 401. A connection belongs to the principal that opened it. The function must be
	// safe for concurrent use. See sse.BearerTokens. Default nil: no authentication.
	Authenticate func(*http.Request) (principal string, err error)

	// Logger receives the logs. Default nil: silent.
	Logger *slog.Logger
	// Registry receives the metrics. Default nil: a registry of the gateway's own,
	// which Admin serves.
	Registry *prometheus.Registry
}
