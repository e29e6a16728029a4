package upstream

import (
	"context"

	"github.com/mcp-sse/mcp-sse/internal/caller"
)

// Caller is the client whose request a server in this process handles: its principal, its
// address, and chosen headers of its HTTP request.
//
// The gateway adds it to the context of handlers with gateway.Options.PassRequest, which the
// drop-in handlers of gosdk and mcpgo set, and not without it. The context then also has the
// values of the context of the HTTP request, such as those that a middleware has added.
type Caller = caller.Caller

// CallerFromContext returns the Caller in the context of a handler, if there is one. The Caller
// must not be changed.
func CallerFromContext(ctx context.Context) (c *Caller, ok bool) { return caller.FromContext(ctx) }

// CallerValues returns a context with the values of that of a Dial which a server in this process
// may see: those of the HTTP request, with its Caller, and without deadline and end. Without a
// Caller it returns context.Background().
func CallerValues(ctx context.Context) context.Context { return caller.Values(ctx) }
