package upstream

import (
	"context"
	"fmt"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// connect opens a session in the way that the URL names, that was found before, or
// that the server tells.
func (u URL) connect(ctx context.Context, x *exchange) (jsonrpc.Attributed, error) {
	switch u.Transport {
	case TransportStreamable:
		return newStreamable(x), nil
	case TransportSSE:
		return sseConn(ctx, x)
	}
	known := u.site.recall()
	switch {
	case u.Transport == TransportStateless:
	case known == TransportStreamable:
		return newUndecided(x, u.site, false), nil
	case known == TransportSSE:
		if c, err := dialSSE(ctx, x); err == nil {
			return c, nil
		}
	}
	found, err := discover(ctx, x)
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		u.site.remember(TransportStateless)
		return newModernConn(x, found), nil
	case u.Transport == TransportStateless:
		return nil, fmt.Errorf("connect to %s: the server does not speak MCP %s: set another transport, or none", x.place(), mcp.VersionStateless)
	}
	return newUndecided(x, u.site, true), nil
}

func sseConn(ctx context.Context, x *exchange) (jsonrpc.Attributed, error) {
	c, err := dialSSE(ctx, x)
	if err != nil { // not a nil *remoteSSE
		return nil, err
	}
	return c, nil
}
