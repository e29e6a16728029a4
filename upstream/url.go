package upstream

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/mcp-sse/mcp-sse/internal/enum"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Transport is how a URL is reached. It has nothing to do with the transports that a gateway serves to its clients:
// see gateway.Transport.
type Transport uint8

// The values of URL.Transport, and their words in text. With one of them Dial does not have to find out what the
// server speaks.
const (
	// TransportStreamable, "streamable", is Streamable HTTP with a handshake: MCP 2025-03-26 to
	// 2025-11-25.
	TransportStreamable Transport = iota + 1
	// TransportStateless, "stateless", is Streamable HTTP without one: MCP 2026-07-28.
	TransportStateless
	// TransportSSE, "sse", is HTTP+SSE: MCP 2024-11-05.
	TransportSSE
)

// transportWords has the words of the transports, in the order of the constants.
var transportWords = enum.Words[Transport]{
	remote.TransportStreamable, remote.TransportStateless, remote.TransportSSE,
}

// String returns the word of t; empty for the zero value.
func (t Transport) String() string { return transportWords.String(t) }

// MarshalText returns the word of t. It fails for a value that is none of the constants, nor zero.
func (t Transport) MarshalText() ([]byte, error) { return transportWords.Marshal(t) }

// UnmarshalText sets t to the value of a word; an empty one is the zero value. Its error lists the words.
func (t *Transport) UnmarshalText(word []byte) error { return transportWords.Unmarshal(word, t) }

// URL reaches an MCP server over HTTP. It must not change while it is in use.
type URL struct {
	// Address is the server's URL with http or https and the path, such as
	// https://example.com/mcp. A user and password in it are sent as Basic
	// authentication. Logs and errors show neither them nor the query.
	Address string
	// Header is sent with each request: a bearer token, a key. It is never logged,
	// and goes only to the scheme, host and port of Address.
	Header http.Header
	// Credentials authorize the requests with an Authorization header, and Header must have none then. nil: Header
	// has one, or there is none. Credentials must hold nothing that changes, because
	// gateway.Gateway.Reconfigure compares them to find out whether a URL is another one.
	Credentials Credentials
	// Name is what errors call the server, if it is one of several.
	Name string
	// Transport is TransportStreamable, TransportStateless or TransportSSE. Zero: Dial finds it out.
	Transport Transport
	// Client sends the requests. It must have no Timeout, which would end streams. Redirects
	// to another scheme, host or port are not followed. nil: a client that bounds dialling and
	// the TLS handshake. A gateway closes its idle connections after
	// the last session.
	Client *http.Client
	// MaxMessageBytes is the longest message that the server may send. A request that
	// gets a longer answer gets an error. Default 16 MiB.
	MaxMessageBytes int
	// Logger receives the life of sessions. nil: the Logger of the gateway in front.
	Logger *slog.Logger
}

// Check reports what is wrong with u, without asking the server.
func (u URL) Check() error { return u.implementation().Check() }

// Dial opens a session. Without a Transport it finds out what the server speaks,
// newest first: it asks server/discover, which older servers answer in any way or not within 2 s, then
// tries the first message, which must be initialize, then a GET for the endpoint of HTTP+SSE. It
// remembers the result, but no failure. Dial fails when the server cannot be reached, refuses access, or
// does not speak MCP. If only initialize can show that, initialize gets the error, or Recv returns it.
//
// The session ends, and Recv says why, when the server has forgotten it (404, or in its own
// words), cannot be reached, or answers 5xx to a request and to a ping after it. Any other
// failure concerns one request, which gets an error response.
//
// A session keeps the cookies that the server sets, and no other has them, unless the
// Client has a Jar.
//
// Close tells a server with sessions that this one is over, once it has answered initialize. It takes at most 2 s.
func (u URL) Dial(ctx context.Context) (jsonrpc.Conn, error) { return u.implementation().Dial(ctx) }

func (u URL) implementation() remote.URL {
	return remote.URL{
		Address: u.Address, Header: u.Header, Credentials: u.Credentials, Name: u.Name, Transport: u.Transport.String(),
		Client: u.Client, MaxMessageBytes: u.MaxMessageBytes, Logger: u.Logger,
	}
}

// Credentials authorize the requests to a server.
type Credentials interface {
	// Authorizer returns the function that authorizes the requests of a session. client returns the Authorization
	// header of the session's client, for Credentials that exchange its token; the server does not get it. With
	// gateway.Options.Reauthenticate it is the header of the client's newest request, otherwise of the request
	// that opened the connection. client is nil unless gateway.Options.ForwardHeaders name Authorization and
	// the client has sent one. Sessions without a client share one Authorizer. log receives warnings.
	Authorizer(client func() string, log *slog.Logger) Authorizer
}

// Authorizer returns the header Authorization for a request, other than the refused one, which
// the server has answered with 401; empty: none. Its error is only logged. It is safe for
// concurrent use, and ends with ctx.
type Authorizer = func(ctx context.Context, refused string) (header string, err error)

// HTTPHandler reaches a server that is an http.Handler of this program, over
// Streamable HTTP or HTTP+SSE as [URL] does, without a socket. Each request calls h in
// its own goroutine. Its context ends with the session, or when nobody needs the response
// any more, and has the values of Dial's context that [CallerValues] returns. h gets the path
// /mcp and the host handler.invalid.
//
// h may flush, and write while it reads. It cannot set deadlines or hijack. A panic in
// it fails the request, as in net/http.
func HTTPHandler(h http.Handler) Upstream { return remote.HTTPHandler(h) }
