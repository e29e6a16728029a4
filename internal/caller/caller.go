// Package caller tells a server in this process who sent it a request: the principal, the
// address and chosen headers of the HTTP request, in the context of its handlers.
//
// The gateway adds the caller with gateway.Options.PassRequest, which the drop-in handlers
// of gosdk and mcpgo set, and not without it. The context then also has the values of the
// context of the HTTP request, such as those that a middleware has added.
package caller

import (
	"context"
	"net/http"
	"net/netip"
)

// Caller is an upstream.Caller, with the same fields.
type Caller struct {
	Principal string
	Addr      netip.Addr
	Header    http.Header
}

// added is what NewContext adds to a context: the caller, and the context before it.
type added struct {
	caller *Caller
	before context.Context
}

type key struct{}

// NewContext returns a copy of ctx with p, which must not change afterwards.
func NewContext(ctx context.Context, p *Caller) context.Context {
	return context.WithValue(ctx, key{}, &added{p, ctx})
}

// FromContext returns the caller in ctx, if there is one.
func FromContext(ctx context.Context) (p *Caller, ok bool) {
	a, ok := ctx.Value(key{}).(*added)
	if !ok {
		return nil, false
	}
	return a.caller, true
}

// Values returns a context with the values that ctx had when NewContext added its caller,
// with the caller, and without deadline and end: what may outlive ctx. Without a caller it
// returns context.Background().
func Values(ctx context.Context) context.Context {
	a, ok := ctx.Value(key{}).(*added)
	if !ok {
		return context.Background()
	}
	return context.WithoutCancel(NewContext(a.before, a.caller))
}

// Join returns a context that ends with ctx, and has the values of values before those of
// ctx. It returns ctx if values is nil.
func Join(ctx, values context.Context) context.Context {
	if values == nil {
		return ctx
	}
	return joined{ctx, values}
}

type joined struct {
	context.Context // ends it
	values          context.Context
}

// Value returns the value of values, or else that of the context that ends it.
func (c joined) Value(key any) any {
	if v := c.values.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}
