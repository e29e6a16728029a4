package remote

import (
	"context"
	"fmt"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
	"github.com/mcp-sse/mcp-sse/upstream/internal/httpsse"
	"github.com/mcp-sse/mcp-sse/upstream/internal/statelessserver"
	"github.com/mcp-sse/mcp-sse/upstream/internal/streamable"
)

// connect opens a session over the transport that the URL names, that was found
// before, or that the server answers.
func (u URL) connect(ctx context.Context, x *exchange.Endpoint) (jsonrpc.Attributed, error) {
	kind := u.Transport
	if kind == "" {
		kind = u.site.recall()
	}
	switch {
	case u.Transport == TransportStreamable:
		return streamable.New(x), nil
	case kind == TransportStreamable:
		return newUndecided(x, u.site, false), nil
	case kind == TransportSSE:
		c, err := httpsse.Dial(ctx, x)
		if err == nil {
			return c, nil
		}
		if u.Transport != "" {
			return nil, err
		}
	}
	found, err := statelessserver.Discover(ctx, x)
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		u.site.remember(TransportStateless)
		return statelessserver.New(x, found), nil
	case u.Transport == TransportStateless:
		return nil, fmt.Errorf("connect to %s: the server does not speak MCP %s: set another transport, or none", x.Place(), mcp.VersionStateless)
	}
	return newUndecided(x, u.site, true), nil
}
