package httpcheck

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// Cluster connects the replicas of a gateway: processes that serve the same servers behind
// one load balancer, with the same key for ids. Package cluster implements it over NATS. Its
// methods are safe for concurrent use.
type Cluster interface {
	// ID returns the first part of the ids that this replica makes. It differs for each start.
	ID() string
	// Attach makes part reachable for the other replicas, until detach is called. If a server
	// has several parts, a request goes to the one that Has its connection, else to the last.
	Attach(server string, part Part) (detach func())
	// Forward sends a request to the replica that holds its connection, and writes the
	// response to w. It reports false, and writes nothing, if this replica has to answer.
	Forward(w http.ResponseWriter, r *http.Request, f Forward) bool
	// Return answers a request that another replica has forwarded, with the word that its
	// connection is gone here, and that this replica takes no new ones. The other one decides
	// what follows.
	Return(w http.ResponseWriter, r *http.Request)
	// Adopt directs the requests for a session whose own replica is gone to this replica,
	// until release is called.
	Adopt(server, id string) (release func())
	// Replicas lists the replicas, this one first.
	Replicas() []Replica
}

var clusterOf func(of any) Cluster

// ProvideCluster sets the function that returns the Cluster of a cluster.Node; nil for anything else. Package
// cluster calls it when it is initialized: the type that users see has none of these methods.
func ProvideCluster(function func(of any) Cluster) { clusterOf = function }

// ClusterOf returns the Cluster of what gateway.Options.Cluster has, which may be one itself; nil if it has none.
func ClusterOf(of any) Cluster {
	if c, ok := of.(Cluster); ok {
		return c
	}
	if clusterOf == nil { // nobody can have a cluster.Node
		return nil
	}
	return clusterOf(of)
}

// Part is one gateway of a replica: a replica has one for each server, and while the
// configuration changes perhaps two.
type Part struct {
	// Handler serves the requests that other replicas forward. Their context has the
	// principal, for Admit, and their RemoteAddr is the client's address.
	Handler http.Handler
	// Has reports whether the connection with that id is open here.
	Has func(id string) bool
	// Draining reports whether the gateway refuses new connections. Requests for a connection
	// that is not open here then belong to another replica.
	Draining func() bool
	// Usage returns what counts against the limits of the cluster. It is called once a second.
	Usage func() connstate.Usage
	// UsedElsewhere receives the sum of the other replicas' usage, once a second.
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

// Replica describes one replica, as its last heartbeat does.
type Replica struct {
	Name        string `json:"name"`
	ID          string `json:"id"`
	Connections int    `json:"connections"`
	Draining    bool   `json:"draining,omitempty"`
	Silent      bool   `json:"silent,omitempty"` // nothing has been heard of it for a while
}

// IsForeign reports whether a request is for another replica: it names a connection that is not
// open here, or drains, with an id that is signed for the principal. One that another replica has
// forwarded is for yet another one if this replica drains.
func (f *Checker) IsForeign(r *http.Request, registry *connstate.Registry, id, principal string) bool {
	if f.opts.Cluster == nil {
		return false
	}
	if _, forwarded := IsForwarded(r); forwarded {
		return registry.Draining()
	}
	return registry.IDs().Verify(id, principal)
}

// Forward sends a request to the replica that holds its connection, for which IsForeign is
// true; see Cluster.Forward. It sets Server, Addr and WriteTimeout. One that another replica has
// forwarded goes back there.
func (f *Checker) Forward(w http.ResponseWriter, r *http.Request, to Forward) bool {
	if _, forwarded := IsForwarded(r); forwarded {
		f.opts.Cluster.Return(w, r)
		return true
	}
	to.Server, to.Addr, to.WriteTimeout = f.opts.Server, f.ClientAddr(r), f.opts.WriteTimeout
	return f.opts.Cluster.Forward(w, r, to)
}

// Adopt directs the requests for a connection that was opened here under an id of another
// replica to this one; see Cluster.Adopt.
func (f *Checker) Adopt(registry *connstate.Registry, id string) (release func()) {
	if f.opts.Cluster == nil || registry.IDs().Made(id) {
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
