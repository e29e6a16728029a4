package cluster

import (
	"context"
	"crypto/tls"
	"net"
)

// SetNetwork makes a replica listen and connect to others with these functions.
func (o *Options) SetNetwork(
	listen func(network, address string) (net.Listener, error),
	dial func(ctx context.Context, network, address string) (net.Conn, error),
) {
	o.listen, o.dial = listen, dial
}

// Replica is the httpcheck.Cluster of a Node.
type Replica = node

// Inside returns the Replica of a Node.
func Inside(n *Node) *Replica { return n.inner }

// Address returns what the replica tells the others.
func (n *node) Address() string { return n.listener.address }

// TLS returns how a replica of a cluster speaks to others, and lets them in.
func TLS(key []byte, cluster, id, to string) (client, server *tls.Config) {
	i, err := newIdentity(key, cluster, id)
	if err != nil {
		panic(err)
	}
	return i.client(to), i.server()
}
