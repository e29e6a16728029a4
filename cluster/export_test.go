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

// Address returns what the replica tells the others.
func (n *Node) Address() string { return n.listener.address }

// TLS returns how a replica of a cluster speaks to others, and lets them in.
func TLS(key []byte, cluster, id, to string) (client, server *tls.Config) {
	i, err := newIdentity(key, cluster, id)
	if err != nil {
		panic(err)
	}
	return i.client(to), i.server()
}
