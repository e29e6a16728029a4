package front

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// Cluster is the replicas of a gateway: processes that serve the same servers behind one
// load balancer, with the same key for ids. Package cluster has one over NATS. Its methods
// are safe for concurrent use.
type Cluster interface {
	// ID returns the part of ids that names this replica. It is new with each start.
	ID() string
	// Attach makes part reachable for the other replicas, until detach is called. Of several
	// parts for one server, the one that Has a connection gets its requests, else the last.
	Attach(server string, part Part) (detach func())
	// Forward has the replica that holds a connection serve a request, and writes its
	// response. It reports false, and has written nothing, if no other replica is to serve
	// the request.
	Forward(w http.ResponseWriter, r *http.Request, f Forward) bool
	// Adopt makes this replica get the requests for a session whose own replica is gone,
	// until release is called.
	Adopt(server, id string) (release func())
	// Replicas returns what is known of the replicas, this one first.
	Replicas() []Replica
}

// Part is one gateway of a replica.
type Part struct {
	// Handler serves the requests that other replicas forward. Their context has the
	// principal, for Admit, and their RemoteAddr is the client's address.
	Handler http.Handler
	// Has reports whether the connection with that id is open here.
	Has func(id string) bool
	// Draining reports whether no new connections are taken, so that requests for one that is
	// not open here are for another replica.
	Draining func() bool
	// Usage returns what counts against the limits of the cluster. It is called once a second.
	Usage func() connstate.Usage
	// UsedElsewhere is told the sum of the other replicas' usage, once a second.
	UsedElsewhere func(connstate.Usage)
}

// Forward is a request for a connection that is not open here.
type Forward struct {
	// Server is the name of the server, and ID the id of the connection, which is signed for
	// Principal.
	Server, ID, Principal string
	// Addr is the address of the client.
	Addr netip.Addr
	// Body is the whole body of the request.
	Body []byte
	// WriteTimeout bounds how long the client may take to read 64 KiB.
	WriteTimeout time.Duration
	// Resumes says that another replica can go on with the connection if its own is gone.
	Resumes bool
}

// Replica is what is known of one replica.
type Replica struct {
	Name        string `json:"name"`
	ID          string `json:"id"`
	Connections int    `json:"connections"`
	Draining    bool   `json:"draining,omitempty"`
	Silent      bool   `json:"silent,omitempty"` // nothing has been heard of it for a while
}

// ErrGone is what the Handler of a Part panics with, before it writes anything, if it drains
// and the connection has just ended: the request is for another replica.
var ErrGone = errors.New("the connection is gone, and this replica drains")

// IsForeign reports whether a replica may hold the connection with that id, which is not
// open here, or drains: the id is one of the principal's, and no other replica has sent the
// request. If one has, and this one drains, IsForeign panics with ErrGone.
func (f *Front) IsForeign(r *http.Request, registry *connstate.Registry, id, principal string) bool {
	if f.opts.Cluster == nil {
		return false
	}
	_, forwarded := IsForwarded(r)
	if forwarded && registry.Draining() {
		panic(ErrGone)
	}
	return !forwarded && registry.Verify(id, principal)
}

// Forward has the replica that holds a connection for which IsForeign is true serve a
// request; see Cluster.Forward. It sets Server, Addr and
// WriteTimeout.
func (f *Front) Forward(w http.ResponseWriter, r *http.Request, to Forward) bool {
	to.Server, to.Addr, to.WriteTimeout = f.opts.Server, f.ClientAddr(r), f.opts.WriteTimeout
	return f.opts.Cluster.Forward(w, r, to)
}

// Adopt makes this replica get the requests for a connection that has been opened here with
// an id of another replica; see Cluster.Adopt.
func (f *Front) Adopt(registry *connstate.Registry, id string) (release func()) {
	if f.opts.Cluster == nil || registry.Made(id) {
		return func() {}
	}
	return f.opts.Cluster.Adopt(f.opts.Server, id)
}

type forwardedKey struct{}

// Forwarded returns a context for a request of a principal that another replica has admitted.
func Forwarded(ctx context.Context, principal string) context.Context {
	return context.WithValue(ctx, forwardedKey{}, principal)
}

// IsForwarded returns the principal of a request that another replica has admitted.
func IsForwarded(r *http.Request) (principal string, ok bool) {
	principal, ok = r.Context().Value(forwardedKey{}).(string)
	return principal, ok
}
