package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
)

// Sessions is how connections and sessions with the server belong together.
//
//	SessionsPerConnection   "per-connection": each connection has a session of its own
//	SessionsShared          "shared": all connections share one session
type Sessions uint8

// The values of Options.Sessions, and their words in text.
const (
	SessionsPerConnection Sessions = iota + 1 // "per-connection"
	SessionsShared                            // "shared"
)

// Transport is a transport that a gateway serves.
//
//	TransportSSE          "sse": HTTP+SSE
//	TransportStreamable   "streamable": Streamable HTTP
//	TransportStdio        "stdio": for ServeStdio, it serves no HTTP
type Transport uint8

// The values in Options.Transports, and their words in text.
const (
	TransportSSE        Transport = iota + 1 // "sse"
	TransportStreamable                      // "streamable"
	TransportStdio                           // "stdio"
)

// ErrorDetails is what errors tell clients about the server; see Options.ErrorDetails.
//
//	ErrorDetailsAuto   "auto": all to clients on this machine, if there is no Authenticate
//	ErrorDetailsFull   "full": all to everybody
//	ErrorDetailsSafe   "safe": only the category of the error
type ErrorDetails uint8

// The values of Options.ErrorDetails, and their words in text.
const (
	ErrorDetailsAuto ErrorDetails = iota + 1 // "auto"
	ErrorDetailsFull                         // "full"
	ErrorDetailsSafe                         // "safe"
)

// Page is who gets the page of the server in a browser; see Options.Page.
//
//	PageAuto   "auto": anybody if there is an Authenticate, else clients on this machine
//	PageOn     "on": anybody
//	PageOff    "off": nobody
type Page uint8

// The values of Options.Page, and their words in text.
const (
	PageAuto Page = iota + 1 // "auto"
	PageOn                   // "on"
	PageOff                  // "off"
)

// Cluster is what connects the replicas of a gateway. [cluster.Join] returns one, and nothing else is accepted.
//
// [cluster.Join]: https://pkg.go.dev/github.com/mcp-sse/mcp-sse/cluster#Join
type Cluster interface {
	// ID returns the part of ids that names this replica.
	ID() string
	// Close leaves the cluster.
	Close()
}

// Options configure a Gateway. A zero field means its default, which Defaults returns. A negative value
// switches a limit off, where that is possible.
//
// An option that has no effect in front of its server is an error if that would do harm: clients would get tools that
// you have left out (Select), or share a session that should be their own or the reverse (Sessions), a handler would
// lack what it needs (PassRequest), or a process that you wanted would not be there (Warm). Two options do no harm and
// are no errors, so that all your gateways can have the same: Remember, without which clients get the same answers
// later, and ForwardHeaders, without which no header leaves the gateway.
type Options struct {
	// # The server, and its URL
	//
	// Transports are those that the gateway serves: TransportSSE is HTTP+SSE,
	// TransportStreamable Streamable HTTP; TransportStdio is for ServeStdio, and serves no
	// HTTP. Default the first two.
	Transports []Transport
	// Prefix is the path before every route and before the path in the endpoint
	// event: with "/tools" MCP is at /tools/mcp. Default none. The gateway also finds a
	// prefix that http.StripPrefix has removed.
	Prefix string
	// SinglePath serves all at one path: any at which the Gateway is mounted, such as one
	// exact pattern of a http.ServeMux. Messages over HTTP+SSE have the connection's id in
	// the query. Not with Prefix. Default false.
	SinglePath bool
	// Name is the name of the server if there are several: in logs, and as the label
	// server of all metrics. It has at most 64 characters of a-z, 0-9, _ and -, and
	// begins with a letter or a digit. Default none.
	Name string
	// Title is a name of the server for people. It counts only if Name is empty. The page in a browser shows it, and
	// log lines have it as the attribute server; lines keep the first one if Reconfigure changes it. Some clients
	// put the name of a server in front of each name of a tool, and drop tools whose whole name is too long. The
	// gateway warns of such tools, and takes Title for the name of the server. Default none: the page and these
	// warnings have the name that the server gives itself, and log lines have no attribute.
	Title string
	// Description says to people what the server is for. The page of several servers at / shows it. Default none: there
	// is what the server says of itself, which is written for models.
	Description string
	// Page is who gets the page of the server in a browser at its URL, and at / the list of the
	// servers. PageAuto gives it to anybody if there is an Authenticate, for which the page asks for
	// a token, and otherwise to clients on this machine alone; PageOn to anybody, PageOff to nobody.
	// The page is a client as any other. Default PageAuto.
	Page Page
	// PageLogin is how the page gets tokens for Authenticate. Default nil: it asks for one.
	PageLogin *PageLogin

	// # Sessions with the server
	//
	// Sessions is the mode of sessions with the server. With SessionsPerConnection
	// each connection has its own, with SessionsShared all connections share one.
	// SessionsShared excludes all that belongs to one client: PassRequest, ForwardHeaders, NoAutoInitialize and
	// the PrincipalEnv of an upstream.Command. The server's own requests to a client (sampling, elicitation,
	// roots) are refused then. It is an error in front of a compose.View, but its members may have it. Default
	// SessionsPerConnection.
	Sessions Sessions
	// Warm is the number of servers that are started ahead of connections. They are not initialized: each
	// connection runs its own handshake. A server that a connection takes is replaced at once.
	//
	//	Warm          with SessionsPerConnection    with SessionsShared
	//	0             1 or none: see below          none
	//	1 and above   as many, at all times         the shared session is started ahead
	//	negative      none                          none
	//
	// Without a value it is 1 if the server is an upstream.Command, no child gets anything of its client
	// (PrincipalEnv, PassRequest, ForwardHeaders), and Transports do not include TransportStdio. With Remember
	// that one server runs only while nothing is remembered of it, and for ProcessIdle after its last use.
	//
	// An upstream.URL has no process to start: with SessionsPerConnection a Warm of 1 and above is an error there.
	// So it is with PassRequest, ForwardHeaders or a PrincipalEnv, and in front of a compose.View.
	Warm int
	// Remember answers clients from memory while their server starts, and ends servers that are not
	// used. It has no effect, and is no error, in front of anything but an upstream.Command, or with
	// NoAutoInitialize or MaxInFlight. Default nil: nothing is remembered.
	Remember *Remember
	// NoAutoInitialize turns the gateway's own MCP handshake off. HTTP+SSE is then the plain
	// transport of 2024-11-05, and Streamable HTTP refuses requests without an Mcp-Session-Id.
	NoAutoInitialize bool
	// PassRequest gives a server in this process the request of its client. It is an error with
	// SessionsShared, with a Warm of 1 and above, and in front of an upstream.Command without a PrincipalEnv. One
	// with a PrincipalEnv implies it, and gets only the principal. Default nil: off.
	PassRequest *PassRequest
	// ForwardHeaders are the names of the headers that the gateway sends to a remote server with each request of
	// a session. It takes their values from the request that opened the connection: over HTTP+SSE its GET, over
	// Streamable HTTP its first POST. Default none. Not with SessionsShared.
	ForwardHeaders []string
	// Select chooses among the tools, prompts and resources of the server. An entry that it leaves out is in no list,
	// and a request that names it gets the error of an unknown name before it reaches the server. Memory has the lists
	// of the server whole. A tool that Select.Only needs the hints of cannot be called before the server has listed
	// it to some client, or memory has its list. It must not be changed later. It is an error in front of a
	// compose.View, whose members have rules of their own. Default nil: everything.
	Select *compose.Selection

	// # Access: clients that may connect, and the answers that they see
	//
	// Authenticate returns the principal that makes a request, or an error: a 401, or the
	// Status of an auth.Error. The gateway calls it for every request of a client: GET, POST and
	// DELETE. A connection belongs to the principal that opened it. The
	// function must be safe for concurrent use. See auth.BearerTokens and package auth/oauth.
	// Default nil: no authentication.
	Authenticate func(*http.Request) (principal string, err error)
	// Reauthenticate makes the gateway call Authenticate again, several times a minute for each
	// open connection. The request of such a call has an Authorization header and nothing else. Over
	// Streamable HTTP it is the header of the connection's newest request, over HTTP+SSE the header of its GET.
	//
	//	Authenticate returns                            the connection
	//	the same principal                              stays
	//	another principal                               is closed as revoked
	//	an auth.Error with Expired                      is closed as expired
	//	an auth.Error with a Status of 500 and above    stays once, and is closed if the next call fails too
	//	any other error                                 is closed as revoked
	//
	// Default false: an open connection stays.
	Reauthenticate bool
	// AllowedOrigins are the values of the Origin header to allow beside the
	// server's own origin, such as "https://app.example.com"; "*" allows any. They get
	// answers to preflights, and CORS headers.
	AllowedOrigins []string
	// AllowedHosts are the values of the Host header, without port, to allow beside loopback names; "*" allows
	// any. On a loopback address no other value is allowed. On any other address, IP addresses are allowed too,
	// and without AllowedHosts all values are.
	AllowedHosts []string
	// PublicHost is the host of the address that users type, without port. The Host header may have it, as if
	// it were one of AllowedHosts. Unlike a value there, it does not make the gateway refuse other hosts.
	PublicHost string
	// TrustedProxies are the networks whose X-Forwarded-For and X-Forwarded-Prefix the
	// gateway believes.
	// Default none.
	TrustedProxies []netip.Prefix
	// ErrorDetails controls what errors tell clients about the server.
	// ErrorDetailsFull includes its exit status, the end of its stderr, its command
	// or address, and its reason for a refusal; ErrorDetailsSafe gives only the
	// category. ErrorDetailsAuto is full for clients on this machine if there is no
	// Authenticate, else safe. The log always has everything. /readyz gives the
	// details as this says, and to a request that Authenticate accepts.
	// Default ErrorDetailsAuto.
	ErrorDetails ErrorDetails

	// # Times
	//
	// InitializationTimeout bounds how long a client's message waits for the
	// handshake. Default 5 s.
	InitializationTimeout time.Duration
	// StartTimeout bounds how long one start of the server may take, including the
	// handshake. Default 60 s.
	StartTimeout time.Duration
	// HeartbeatInterval is the longest silence on a stream before a heartbeat.
	// Default 15 s; negative: no heartbeats.
	HeartbeatInterval time.Duration
	// IdleTimeout closes a connection that has had no POST, no request in flight and, over
	// Streamable HTTP, no open GET for this long. Default 600 s over Streamable HTTP; never over
	// HTTP+SSE, whose stream shows that the client is there. Negative: never, but 5 min
	// for clients without an Mcp-Session-Id (MCP 2026-07-28). A connection whose Mcp-Session-Id the client
	// never sends back has a minute at most.
	IdleTimeout time.Duration
	// RequestTimeout bounds how long the server may take for one request, or
	// between two reports of its progress; whatever it reports, at most ten times as
	// long. Default 60 s.
	RequestTimeout time.Duration

	// # Limits
	//
	// MaxConnections bounds the open connections, and together with Warm the sessions
	// with the server. A client that finds all of them taken gets 503 with a Retry-After, and in the body
	// an error with the reason server_busy. Over Streamable HTTP the connection that has been idle longest, for
	// 10 s at least, is closed first and makes room. There, a POST without an Mcp-Session-Id opens a connection,
	// which counts for a while after its answer even if the client never comes back: 2 s, and a minute
	// after an initialize. Default 10,000; negative: unlimited.
	MaxConnections int
	// MaxConnectionsPerIP bounds the open connections from one client address (one
	// /64 for IPv6), with Authenticate those of one principal there. A client over the limit gets 429 with a
	// Retry-After. Default 0: unlimited.
	MaxConnectionsPerIP int
	// ConnectRate bounds new connections a second from one client address (one /64
	// for IPv6), with Authenticate those of one principal there. Twice as many may come at
	// once. Clients on this machine are exempt, those of a proxy on it are not. Default 50;
	// negative: unlimited.
	ConnectRate float64
	// MaxMessageBytes bounds the body of a POST. Default 4 MiB.
	MaxMessageBytes int64
	// MaxInFlight bounds the requests of one session that the server works on at
	// the same time. More wait in order; 1 serializes them. Default 0: unlimited.
	MaxInFlight int

	// # Restarts and replicas
	//
	// IDKey signs the ids of connections, and has at least 32 random bytes. It lets a client of Streamable HTTP
	// go on under the Mcp-Session-Id that it has, although its connection is gone. A gateway with the same key
	// and Name knows the id after a restart; so does this one after the IdleTimeout. With NoAutoInitialize no
	// connection is opened again. Default nil: a random key, which ends with the process.
	IDKey []byte
	// Cluster is the replicas of the gateway, each with the same IDKey and options: any of
	// them serves any request, and MaxConnections, MaxConnectionsPerIP and ConnectRate are
	// limits of the whole cluster. Two things let connections exceed these limits. First, a replica knows the use
	// at the others as it was a second ago, so all that opens within that second may come on top. Second, a
	// replica does not tell the others of an origin (a principal at an address or /64) that uses less than a
	// sixteenth of its limit there, so with n replicas an origin may get (n-1)/16 of its limit more.
	// The gateway does not close the Cluster. Default nil: one process.
	Cluster Cluster

	// # Logs, metrics and traces
	//
	// Logger receives the logs. Default nil: silent.
	Logger *slog.Logger
	// Audit receives a line for each tool call, with the attributes server, principal, client, address, tool,
	// outcome, seconds, requestBytes and answerBytes, and never arguments or results. client is the program, as far as
	// it says which it is, and address is empty on stdin and stdout. In front of a compose.View it has the attributes
	// view, member and memberTool, too: the view, the member that the call was sent to, and the tool's name there; a
	// call that was sent to none has none of them. outcome is "ok", the error_type of the metric, "refused", or
	// "notification" for a call without an id. The gateway writes the line before it sends the answer: a handler that
	// waits holds up the session. Default nil: none.
	Audit *slog.Logger
	// TracerProvider makes the OpenTelemetry spans. Default nil: none.
	TracerProvider trace.TracerProvider
	// Registry receives the metrics. Default nil: a registry of the gateway's own,
	// which Admin serves.
	Registry *prometheus.Registry

	program forprogram.Options
}

// Remember keeps what a server answered to initialize, tools/list, prompts/list, resources/list and
// resources/templates/list, for equal protocol versions and capabilities. A client that sends these is
// answered at once, byte for byte, and its server starts when the client first needs it. Then the server
// is asked again: if a list has changed, the client gets its list_changed.
//
// The memory belongs to the command with its arguments, its directory, the hash of its
// environment, and the times and sizes of the program and of the scripts that it names.
type Remember struct {
	// Dir is the directory of the files, which nobody else can read. Empty: what is remembered ends
	// with the Gateway.
	Dir string
	// For is the age of what is remembered from which the gateway asks the server again in the
	// background when a client comes. It has no value for never: a negative one is an error. Default 24 h.
	For time.Duration
	// ProcessIdle ends a session that has had no message for this long, and no request, question,
	// subscription or task open, and whose lists have not changed. The next message starts another one,
	// which gets the client's log level. A shared session ends when no client has been there for this
	// long, unless Warm wants it ahead of clients. Default 10 min; negative: never.
	ProcessIdle time.Duration
}

// PageLogin is a public client of an OAuth issuer, with which the page logs its user in by a code and
// PKCE. The issuer redirects to the URL of the page, and lets pages from its scheme, host and port read the
// metadata and the token endpoint of the issuer (CORS). The token endpoint has the scheme, host and port of Issuer.
type PageLogin struct {
	// Issuer is the URL of the issuer, and ClientID the client.
	Issuer, ClientID string
	// Resource is the URL for which the tokens are, and Scopes what they must allow.
	Resource string
	Scopes   []string
}

// PassRequest gives a server in this process the values of the context of a client's HTTP
// request, and its upstream.Caller. There are two HTTP requests from which they may come: the one that opened the
// connection (over HTTP+SSE its GET, over Streamable HTTP its first POST), and the POST that brought the message.
//
//	in the server                                                 it sees the values of
//	Dial, and handlers that belong to a session                   the request that opened the connection
//	a function of upstream.Handle, and a handler of mcpgo         the POST; where that has none, as above
//	a handler of gosdk, upstream.Serve and upstream.HTTPHandler   the request that opened the connection
type PassRequest struct {
	// Headers are the names of the headers that the Caller has.
	Headers []string
	// Context returns the context whose values are passed on. The gateway calls it for each GET and POST that has
	// passed all checks. Its error refuses the request with 404 and its text. It must be
	// safe for concurrent use. Default nil: the request's own context. In a Cluster, one replica forwards a
	// request to another one that has the connection. Values that middleware of the first one has added do not
	// arrive: the context has only the values that are added at the second one.
	Context func(*http.Request) (context.Context, error)
}
