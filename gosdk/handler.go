package gosdk

import (
	"context"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/sse"
)

// NewSSEHandler is mcp.NewSSEHandler with a gateway:
//
//	http.Handle("/sse", gosdk.NewSSEHandler(getServer, nil))
//
// It is New for programs that set their options in their code: it panics if New fails.
func NewSSEHandler(getServer func(*http.Request) *mcp.Server, opts *gateway.Options) *gateway.Gateway {
	if opts == nil {
		opts = &gateway.Options{}
	}
	gw, err := New(getServer, *opts)
	if err != nil {
		panic("gosdk.NewSSEHandler: " + err.Error())
	}
	return gw
}

// New returns a gateway to the servers that getServer chooses. The caller ends it with
// Shutdown.
//
// New calls getServer for each GET of HTTP+SSE and each POST of Streamable HTTP that has
// passed the checks of host, origin, method and authentication, concurrently. A connection
// that the request opens has a session with the server that it returns; nil refuses the
// request with 404 (go-sdk's own handler: 400).
//
// New sets PassRequest and SinglePath, so the options may not ask for shared sessions,
// warm servers or a Prefix: New then fails. (mcpgo.NewSSEServer takes shared sessions and warm servers,
// as one server serves all its clients.) The gateway serves both transports at the path at which it is
// mounted, which may be one exact pattern. New fails if options are wrong; the error names
// them all.
func New(getServer func(*http.Request) *mcp.Server, opts gateway.Options) (*gateway.Gateway, error) {
	if getServer == nil {
		return nil, errors.New("gosdk: the function that returns the server is nil")
	}
	var pass gateway.PassRequest
	if opts.PassRequest != nil {
		pass = *opts.PassRequest
	}
	pass.Context = choosing(getServer, pass.Context)
	opts.PassRequest, opts.SinglePath = &pass, true
	idle := mcp.NewServer(&mcp.Implementation{Name: "none"}, nil)
	return gateway.New(dialer(func(ctx context.Context) *mcp.Server {
		if server, ok := ctx.Value(serverKey{}).(*mcp.Server); ok {
			return server
		}
		return idle // a readiness probe has no request that could choose: what can be reached is go-sdk
	}), opts)
}

// serverKey is the key of the chosen server in the context of a request that may open a connection.
type serverKey struct{}

var errNone = errors.New("no server available")

// choosing returns a gateway.PassRequest.Context that adds the server to the context
// of a request that may open a connection. before is the user's own Context; nil: none.
func choosing(getServer func(*http.Request) *mcp.Server,
	before func(*http.Request) (context.Context, error)) func(*http.Request) (context.Context, error) {
	return func(r *http.Request) (context.Context, error) {
		ctx := r.Context()
		if before != nil {
			var err error
			ctx, err = before(r)
			if err != nil {
				return nil, err
			}
		}
		if r.Method != http.MethodGet && r.URL.Query().Has(sse.ConnectionParam) { // a message over HTTP+SSE
			return ctx, nil
		}
		server := getServer(r)
		if server == nil {
			return nil, errNone
		}
		return context.WithValue(ctx, serverKey{}, server), nil
	}
}
