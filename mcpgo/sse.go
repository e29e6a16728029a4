package mcpgo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/gateway"
)

// maxHeaderBytes bounds the head of a request to what Start serves.
const maxHeaderBytes = 32 << 10

// Option configures an SSEServer.
type Option func(*config)

type config struct {
	gateway     gateway.Options
	contextFunc server.SSEContextFunc
	base        string
	endpoint    string
}

// WithGatewayOptions sets the options of the gateway. Its Prefix is as WithStaticBasePath.
// NewSSEServer sets SinglePath.
//
// NewSSEServer also sets PassRequest, with the fields that opts give it, unless opts ask for shared sessions or a Warm
// of 1 and above. Sessions then belong to no client: handlers find no upstream.Caller, and no values of the HTTP
// request. With a PassRequest of your own beside them NewSSEServer panics, because the two contradict each other, as
// WithSSEContextFunc beside them does.
func WithGatewayOptions(opts gateway.Options) Option {
	return func(c *config) { c.gateway = opts }
}

// WithSSEContextFunc sets a function that makes the contexts of handlers, as
// server.WithSSEContextFunc does. The gateway calls f with each HTTP request and its context, and f returns the
// context whose values are seen:
//
//	f got                                  its values are seen by
//	a POST                                 the handlers of the request in it
//	the request that opened a connection   the handlers of notifications, the hooks of the session and of initialize
//
// Over HTTP+SSE a GET opens the connection, over Streamable HTTP the first POST. Unlike the context that mcp-go passes,
// that of f does not have the client's session.
func WithSSEContextFunc(f server.SSEContextFunc) Option {
	return func(c *config) { c.contextFunc = f }
}

// WithStaticBasePath sets the path before that of the stream, as
// server.WithStaticBasePath does.
func WithStaticBasePath(base string) Option {
	return func(c *config) { c.base = base }
}

// WithSSEEndpoint sets the path of the stream, as server.WithSSEEndpoint does. Default
// "/sse".
func WithSSEEndpoint(endpoint string) Option {
	return func(c *config) { c.endpoint = endpoint }
}

// SSEServer serves a server of mcp-go over HTTP+SSE and Streamable HTTP. It is an
// http.Handler, safe for concurrent use. Make it with NewSSEServer and end it with Shutdown.
type SSEServer struct {
	gateway *gateway.Gateway
	path    string
	http    *http.Server
}

// NewSSEServer returns an SSEServer for s, in place of server.NewSSEServer. It panics if s
// is nil, and if options are wrong or contradict each other: the panic names them all.
//
// Handlers see the values of the context of the client's POST. The Header of mcp-go's
// requests is empty: WithSSEContextFunc can put what a handler needs into the context,
// and gateway.PassRequest.Headers names headers for upstream.CallerFromContext. The stream is at
// /sse, and so are the POSTs, with the connection in the query: clients learn that from the
// stream. So these options of mcp-go have no counterpart:
//
//   - WithBaseURL, WithUseFullURLForMessageEndpoint, WithMessageEndpoint,
//     WithDynamicBasePath: the endpoint is the path of the client's own GET, wherever
//     the handler is mounted; see SSEHandler.
//   - WithAppendQueryToMessageEndpoint: if the context of a POST lacks a value, its handler sees the
//     value of the request that opened the connection.
//   - WithSessionIDGenerator: ids are random, because they are what admits a POST. The
//     session's id is not that of the connection.
//   - WithKeepAlive, WithKeepAliveInterval: heartbeats are on; they are comments, not pings.
//     See gateway.Options.HeartbeatInterval.
//   - WithSSECORS: gateway.Options.AllowedOrigins. Unlike mcp-go, the gateway
//     refuses web pages of other origins by default.
//   - WithSSEDisableLocalhostProtection: gateway.Options.AllowedHosts.
//   - WithHTTPServer, WithSSEProtectedResourceMetadata: mount the SSEServer in a server of
//     your own, beside server.NewProtectedResourceMetadataHandler.
func NewSSEServer(s *server.MCPServer, opts ...Option) *SSEServer {
	if s == nil {
		panic("mcpgo.NewSSEServer: there is no server")
	}
	c := config{endpoint: "/sse"}
	for _, o := range opts {
		o(&c)
	}
	streamPath, o, err := c.resolve()
	if err != nil {
		panic("mcpgo.NewSSEServer: " + err.Error())
	}
	g, err := gateway.New(Server(s), o)
	if err != nil {
		panic("mcpgo.NewSSEServer: " + err.Error())
	}
	sse := &SSEServer{gateway: g, path: streamPath}
	sse.http = &http.Server{Handler: sse, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeaderBytes}
	return sse
}

// resolve returns the path of the stream and the options of the gateway.
func (c config) resolve() (string, gateway.Options, error) {
	o := c.gateway
	if o.Prefix != "" && c.base != "" && o.Prefix != c.base {
		return "", o, fmt.Errorf("WithStaticBasePath(%q) contradicts the gateway's Prefix %q", c.base, o.Prefix)
	}
	streamPath := path.Join("/", cmp.Or(c.base, o.Prefix), c.endpoint)
	o.Prefix, o.SinglePath = "", true
	if o.Sessions == gateway.SessionsShared || o.Warm > 0 {
		if c.contextFunc != nil {
			return "", o, errors.New(
				"WithSSEContextFunc contradicts Warm and shared sessions: they belong to no client")
		}
		return streamPath, o, nil
	}
	var pass gateway.PassRequest
	if o.PassRequest != nil {
		pass = *o.PassRequest
	}
	pass.Context = c.requestContext
	o.PassRequest = &pass
	return streamPath, o, nil
}

// requestContext returns the context of a request as handlers see it.
func (c config) requestContext(r *http.Request) (context.Context, error) {
	ctx := r.Context()
	if pass := c.gateway.PassRequest; pass != nil && pass.Context != nil {
		var err error
		ctx, err = pass.Context(r)
		if err != nil {
			return nil, err
		}
	}
	if c.contextFunc != nil {
		ctx = c.contextFunc(ctx, r)
	}
	return ctx, nil
}

// ServeHTTP serves the stream and the messages at the one path of the stream, and answers
// 404 for all else.
func (s *SSEServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != s.path {
		http.NotFound(w, r)
		return
	}
	s.gateway.ServeHTTP(w, r)
}

// SSEHandler returns a handler that serves the stream and the messages at any path at
// which it is mounted, also one with variables.
func (s *SSEServer) SSEHandler() http.Handler { return s.gateway }

// MessageHandler returns the same handler as SSEHandler. Clients do not need it: their
// messages go to the path of the stream.
func (s *SSEServer) MessageHandler() http.Handler { return s.gateway }

// Gateway returns the gateway behind the server.
func (s *SSEServer) Gateway() *gateway.Gateway { return s.gateway }

// Start listens on the TCP address addr and serves until Shutdown, then returns
// http.ErrServerClosed.
func (s *SSEServer) Start(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return s.http.Serve(l)
}

// Shutdown ends the gateway, as gateway.Gateway.Shutdown does, then what Start serves.
func (s *SSEServer) Shutdown(ctx context.Context) error {
	return errors.Join(s.gateway.Shutdown(ctx), s.http.Shutdown(ctx))
}
