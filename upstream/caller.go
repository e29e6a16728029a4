package upstream

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/mcp-sse/mcp-sse/internal/caller"
)

// Caller is the client whose request a server in this process handles: its principal, its
// address, and chosen headers of its HTTP request.
//
// The gateway adds it to the context of handlers with gateway.Options.PassRequest, which the
// drop-in handlers of gosdk and mcpgo set, and not without it. The context then also has the
// values of the context of the HTTP request, such as those that a middleware has added.
type Caller struct {
	// Principal is who was authenticated; empty without authentication.
	Principal string
	// Addr is the client's address, as trusted proxies report it; it may be the zero
	// Addr.
	Addr netip.Addr
	// Header has the headers that gateway.PassRequest.Headers names, as far as the
	// request has them. It must not be changed.
	Header http.Header
}

// CallerFromContext returns the Caller in the context of a handler, if there is one. The Caller
// must not be changed.
func CallerFromContext(ctx context.Context) (c *Caller, ok bool) {
	found, ok := caller.FromContext(ctx)
	return (*Caller)(found), ok
}

// CallerValues is for an [Upstream] of your own: its Dial passes its context, and gives the result to the handlers of
// the session. The result has the values that a server in this process may see: those of the context of the
// client's HTTP request, and its Caller. It has no deadline and never ends, because a session outlives Dial. If ctx
// has no Caller, CallerValues returns context.Background().
func CallerValues(ctx context.Context) context.Context { return caller.Values(ctx) }
