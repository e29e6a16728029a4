// Package asker has what a gateway and the server that it dials tell each other beside messages: a server at a URL, and
// one that serves in this process on behalf of the gateway's client, as the members of a view do.
//
// The gateway adds an [Asker] to the context of each Dial that a client has caused, and not to the others: of warm
// servers, of shared sessions and of probes. A connection that such a server has of another gateway is a [Conditional]:
// it tells without a message how the server behind it is.
package asker

import (
	"context"
	"log/slog"
	"net/netip"
)

// Asker is the client that needs the session.
type Asker struct {
	// Principal, Addr, Local, Proxied and UserAgent are those of connstate.Client.
	Principal      string
	Addr           netip.Addr
	Local, Proxied bool
	UserAgent      string
	// Connection is the shortened id of the client's connection.
	Connection string
	// Header has all headers of the client that any server behind may get, as an operator has named them. A gateway
	// behind takes those that its own options name, and a server at a URL gets all. Nobody may change it or log it.
	Header map[string][]string
	// Credentials returns those of the client's newest request, which must not be logged; nil: there are none.
	Credentials func() string
	// OfStream are the credentials to which the client's stream over HTTP+SSE is bound, whatever comes with its newest
	// request; empty over other transports, and without Reauthenticate. They must not be logged.
	OfStream string
	// OnCheck has f called after each check of the client's credentials, and when it sends others. stop ends that. f
	// may be called once more meanwhile. nil: the client's credentials are not followed.
	OnCheck func(f func()) (stop func())
	// OnListen has f called with the method of each notification about a list to which the client listens, also of
	// those to which it does already: a view tells a client of lists that it has got, and else has to be told which it
	// wants. stop ends that. f must not wait. nil: nobody listens.
	OnListen func(f func(method string)) (stop func())
	// Details reports whether the client may see the details of errors now, such as a command; nil: it may not.
	Details func() bool
	// Allows reports whether the client has not narrowed away a tool of that name; nil: it has narrowed nothing.
	Allows func(tool string) bool
	// Gateway is the Name, else the Title, of the gateway; empty if it has neither. Logger is the gateway's; nil: none.
	Gateway string
	Logger  *slog.Logger
	// Values has the values of the request's context for a server in this process; nil: none are passed on. It has
	// no end.
	Values context.Context
}

type (
	key        struct{}
	openingKey struct{}
)

// Opening returns a context for the requests that open a session with a server: what it says to them, it says of all
// sessions.
func Opening(ctx context.Context) context.Context { return context.WithValue(ctx, openingKey{}, true) }

// IsOpening reports whether a request opens a session.
func IsOpening(ctx context.Context) bool {
	is, _ := ctx.Value(openingKey{}).(bool)
	return is
}

// NewContext returns a copy of ctx with a.
func NewContext(ctx context.Context, a *Asker) context.Context {
	return context.WithValue(ctx, key{}, a)
}

// FromContext returns the Asker in ctx, which must not be changed, and nil if there is none.
func FromContext(ctx context.Context) *Asker {
	a, _ := ctx.Value(key{}).(*Asker)
	return a
}
