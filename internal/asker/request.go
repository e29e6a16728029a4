package asker

import (
	"context"
	"sync"
)

// Request is what a gateway and the server that it dials tell each other of one request of the client, beside its
// message. It is in the context of that message. A server that passes the message on passes the context of Before.
type Request struct {
	before      context.Context
	credentials string

	mu          sync.Mutex // guards what follows
	member, own string
}

type requestKey struct{}

// WithRequest returns a copy of ctx, the context of a message, with the Request of that message. If it has one, ctx
// itself is returned. ctx may be nil. credentials are those that the request came with, which must not be logged;
// empty: they are unknown.
func WithRequest(ctx context.Context, credentials string) (context.Context, *Request) {
	if r := RequestFrom(ctx); r != nil {
		return ctx, r
	}
	r := &Request{before: ctx, credentials: credentials}
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithValue(ctx, requestKey{}, r), r
}

// RequestFrom returns the Request in the context of a message, which may be nil; nil if there is none.
func RequestFrom(ctx context.Context) *Request {
	if ctx == nil {
		return nil
	}
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}

// Before returns the context of a message without its Request; nil if the message has no other values.
func Before(ctx context.Context) context.Context {
	if r := RequestFrom(ctx); r != nil {
		return r.before
	}
	return ctx
}

// Credentials returns those that the request came with, which must not be logged; empty if they are unknown, and for a
// nil *Request.
func (r *Request) Credentials() string {
	if r == nil {
		return ""
	}
	return r.credentials
}

// LeadsTo notes the member of a view that the request is sent to, and the name that it has there; empty: it is sent to
// none. It does nothing for a nil *Request.
func (r *Request) LeadsTo(member, own string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.member, r.own = member, own
}

// Destination returns the member that the request was sent to, and the name that it has there; empty if it was sent to
// none.
func (r *Request) Destination() (member, own string) {
	if r == nil {
		return "", ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.member, r.own
}
