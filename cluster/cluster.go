// Package cluster makes the replicas of a gateway one.
//
// [Join] returns a [Node] for gateway.Options.Cluster. Replicas find each other
// over NATS (https://nats.io): by a heartbeat each second, which has the address of the replica
// and what it uses of the limits, and by a subject for each session that has outlived its
// replica. A request for a connection that another replica holds goes to that replica's address,
// over HTTP and mutual TLS: whoever does not have the key of the cluster can neither read,
// send nor answer one. No request is served twice: a replica that may have received it is not
// replaced by another. Replicas compare no clocks.
package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/internal/clusterwords"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Options configure [Join].
type Options struct {
	// URL is that of NATS, as nats://host:4222 or tls://host:4222; several with commas
	// between them. It may have a user and password.
	URL string
	// Credentials is the path of a file with the credentials of NATS; empty: none.
	Credentials string
	// NATS are further options of nats.go, such as the certificates of TLS.
	NATS []nats.Option
	// Name is that of the cluster: replicas with another one do not see each other.
	// Default "mcp". Replica is the name of this replica, which people see; default the
	// host name. Both have at most 48 letters, digits, _ and -.
	Name, Replica string
	// Key is the key of the gateway's ids, of at least 32 bytes, which all replicas have.
	Key []byte
	// Address is where this replica listens for the requests of the others, as HOST:PORT, and what
	// it tells them. Default: the address from which it reaches NATS, so loopback if NATS is there,
	// and a free port. Without a host, as :7946, it listens on all addresses, and tells the others
	// the one from which it reaches NATS.
	Address string

	// Logger receives the logs; nil: silent. Registry gets the metrics; nil: none.
	Logger   *slog.Logger
	Registry *prometheus.Registry

	// listen and dial are those of package net; tests have others.
	listen func(network, address string) (net.Listener, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

func (o Options) withDefaults() (Options, error) {
	host, _ := os.Hostname() // an empty one is refused below
	host = strings.ReplaceAll(host, ".", "-")
	o.Name, o.Replica = cmp.Or(o.Name, "mcp"), cmp.Or(o.Replica, host[max(0, len(host)-48):])
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.listen == nil {
		o.listen, o.dial = net.Listen, new(net.Dialer).DialContext
	}
	for what, name := range map[string]string{"cluster": o.Name, "replica": o.Replica} {
		if !clusterwords.IsName(name) {
			return o, fmt.Errorf("the name of the %s is %q: use 1 to 48 letters, digits, _ and -", what, name)
		}
	}
	if len(o.Key) < 32 {
		return o, errors.New("the key of a cluster needs 32 bytes or more, the same on all replicas")
	}
	if !clusterwords.IsURL(o.URL) { // it may have a password
		return o, errors.New("the URL of NATS is not valid: write nats://host:4222, or tls://host:4222")
	}
	return o, nil
}

// Node is this process as a replica: a gateway.Cluster, safe for concurrent use.
type Node struct{ inner *node }

// ID returns the part of ids that names this replica.
func (n *Node) ID() string { return n.inner.ID() }

// Close leaves the cluster: it gives requests from other replicas a second, ends those and the
// requests that are forwarded, and waits for the handlers. Requests that others send meanwhile go elsewhere.
// It is idempotent.
func (n *Node) Close() { n.inner.Close() }

func init() {
	httpcheck.ProvideCluster(func(of any) httpcheck.Cluster {
		if n, ok := of.(*Node); ok && n != nil {
			return n.inner
		}
		return nil
	})
}

// node is the httpcheck.Cluster of a Node.
type node struct {
	id, prefix string
	log        *slog.Logger // for what other programs may cause
	silence    *log.Logger  // for what this package learns in other ways
	metrics    *metrics.Cluster
	sealer     *sealer
	identity   *identity
	nc         *nats.Conn
	maxBeat    int // bytes of a heartbeat
	asks       chan *nats.Msg
	dialTCP    func(ctx context.Context, network, address string) (net.Conn, error)
	transport  *http.Transport
	buffers    *buffers
	listener   *listener
	moved      *lru.Cache[[2]string, string] // where sessions that had moved were found, by server and id
	done       chan struct{}                 // ends run
	leave      sync.Once
	running    sync.WaitGroup // requests of other replicas need leaving to be false
	entered    atomic.Int64   // requests of other replicas that are served
	serving    atomic.Int64   // those of them that are no streams
	down       atomic.Bool    // NATS is not connected: nats.go may hold its lock until it is

	mu      sync.RWMutex       // guards what follows
	self    *member            // what it tells the others
	members map[string]*member // self is one
	flights map[*flight]struct{}
	parts   map[string][]*httpcheck.Part // by server; the lists are not changed
	number  uint64                       // of the last heartbeat
	leaving bool                         // no request of another replica begins
	closed  bool                         // no flight begins
}

// Join makes this process a replica of a cluster, which takes 2.5 seconds. It fails if NATS
// cannot be reached for 10 seconds, or refuses the credentials, and if another replica has
// the name. Later, the Node connects again by itself. The caller must Close it.
func Join(ctx context.Context, o Options) (*Node, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	self := &member{id: rand.Text()[:idBytes], heartbeat: heartbeat{Name: o.Replica, Joining: true}}
	n := &node{
		id: self.id, prefix: "mcp." + o.Name + ".", sealer: newSealer(o.Key, o.Name),
		log: throttle.NewLines().Logger(o.Logger), silence: log.New(io.Discard, "", 0),
		asks: make(chan *nats.Msg, 1024), dialTCP: o.dial, buffers: newBuffers(), done: make(chan struct{}),
		self: self, members: map[string]*member{self.id: self},
		flights: make(map[*flight]struct{}), parts: make(map[string][]*httpcheck.Part),
	}
	n.identity, err = newIdentity(o.Key, o.Name, n.id)
	if err != nil {
		return nil, err
	}
	n.transport = n.newTransport()
	n.nc, err = n.connect(ctx, o)
	if err != nil {
		return nil, err
	}
	n.metrics, err = metrics.NewCluster(o.Registry)
	if err != nil {
		n.nc.Close()
		return nil, err
	}
	n.moved, _ = lru.New[[2]string, string](maxMoved)
	n.maxBeat = min(maxBeat, int(n.nc.MaxPayload())-headBytes-sealBytes)
	errorLog := log.New(strangers{n}, "", 0)
	n.listener, err = listen(o, n.nc.LocalAddr(), n.identity, http.HandlerFunc(n.serve), errorLog)
	if err != nil {
		n.Close()
		return nil, fmt.Errorf("listen for other replicas: %w", err)
	}
	self.Address = n.listener.address
	n.running.Go(n.listener.serve)
	_, err = n.nc.Subscribe(n.questions(n.id), n.dispatch)
	_, hbErr := n.nc.Subscribe(n.prefix+"hb", n.dispatch)
	n.running.Go(n.run)
	err = errors.Join(err, hbErr, n.introduce(ctx))
	if err != nil {
		n.Close()
		return nil, err
	}
	return &Node{n}, nil
}

// introduce listens for other replicas, fails if one has the same name, and tells them that this one serves.
func (n *node) introduce(ctx context.Context) error {
	if n.maxBeat < 4<<10 {
		return fmt.Errorf("the max_payload of NATS is %d bytes: replicas need 8 KiB or more", n.nc.MaxPayload())
	}
	select {
	case <-time.After(2500 * time.Millisecond): // each is heard once a second
	case <-ctx.Done():
		return ctx.Err()
	}
	var same []string
	n.mu.Lock()
	heard := n.self.number > 0
	for _, m := range n.members {
		first := !m.Joining || m.id < n.id // of two that join at once, one may
		if m != n.self && m.Name == n.self.Name && first && !m.silent() {
			same = append(same, m.id)
		}
	}
	n.mu.Unlock()
	if !heard {
		const text = "NATS does not pass messages on: its account must be allowed to publish and subscribe %s>"
		return fmt.Errorf(text, n.prefix)
	}
	for _, id := range same {
		if _, err := n.ask(n.questions(id)); err == nil { // its heartbeats are not old ones that somebody repeats
			const text = "replica %s (%s) of the cluster already runs: give each replica a name of its own"
			return fmt.Errorf(text, n.self.Name, id)
		}
	}
	n.beat(func(self *member) { self.Joining = false })
	return nil
}

// Close is Node.Close.
func (n *node) Close() {
	n.leave.Do(func() {
		n.beat(func(self *member) { self.Leaving = true })
		n.mu.Lock()
		n.leaving = true
		n.mu.Unlock()
		if n.listener != nil && !n.down.Load() { // else Join has failed, or nobody hears that this replica leaves
			n.listener.retire(func() int { return int(n.entered.Load()) })
		}
		close(n.done)
		n.mu.Lock()
		n.closed = true
		n.mu.Unlock()
		n.endFlights(errDraining, func(f *flight) bool { return f.stream })
		n.endFlights(errOver, func(*flight) bool { return true })
		if n.listener != nil {
			n.listener.close()
		}
		n.running.Wait()
		n.transport.CloseIdleConnections()
		_ = n.nc.FlushTimeout(time.Second) // if NATS is away, the others notice in any case
		n.nc.Close()
		n.metrics.Unregister()
	})
}

// ID returns the part of ids that names this replica.
func (n *node) ID() string { return n.id }

// Attach makes part reachable for the other replicas.
func (n *node) Attach(server string, part httpcheck.Part) (detach func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.parts[server] = append(slices.Clip(n.parts[server]), &part)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.parts[server] = slices.DeleteFunc(slices.Clone(n.parts[server]), func(p *httpcheck.Part) bool {
			return p == &part
		})
		maps.DeleteFunc(n.parts, func(_ string, list []*httpcheck.Part) bool { return len(list) == 0 })
	}
}

// part returns the part of a server that has a connection, else the last one, or nil.
func (n *node) part(server, id string) (part *httpcheck.Part, has bool) {
	n.mu.RLock()
	parts := n.parts[server]
	n.mu.RUnlock()
	for _, part = range parts {
		if part.Has(id) {
			return part, true
		}
	}
	return part, false
}

// draining reports whether this replica takes no new connections of a server.
func (n *node) draining(server string) bool {
	part, _ := n.part(server, "")
	return part == nil || part.Draining()
}

// Adopt makes this replica get the requests for a session whose own replica is gone.
func (n *node) Adopt(server, id string) (release func()) {
	sub, _ := n.nc.ChanSubscribe(n.adopted(server, id), n.asks) // fails once the node is closed
	return func() { _ = sub.Unsubscribe() }
}
