// Package cluster makes the replicas of a gateway one, over NATS (https://nats.io).
//
// [Join] returns a [Node], which is the front.Cluster of this process. A request for a
// connection that another replica holds goes there, and its response comes back, in frames
// that are encrypted, numbered and acknowledged: the loss of a frame or a restart of NATS loses
// no request, and none is served twice. NATS has one subject for each replica, and one for
// each session that has outlived its replica. Replicas compare no clocks.
package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/front"
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

	// Logger receives the logs; nil: silent. Registry gets the metrics; nil: none.
	Logger   *slog.Logger
	Registry *prometheus.Registry
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,48}$`)

func (o Options) withDefaults() (Options, error) {
	host, _ := os.Hostname() // an empty one is refused below
	host = strings.ReplaceAll(host, ".", "-")
	o.Name, o.Replica = cmp.Or(o.Name, "mcp"), cmp.Or(o.Replica, host[max(0, len(host)-48):])
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	for what, name := range map[string]string{"cluster": o.Name, "replica": o.Replica} {
		if !validName.MatchString(name) {
			return o, fmt.Errorf("the name of the %s is %q: use 1 to 48 letters, digits, _ and -", what, name)
		}
	}
	if len(o.Key) < 32 {
		return o, errors.New("the key of a cluster needs 32 bytes or more, the same on all replicas")
	}
	return o, nil
}

// Node is this process as a replica. It is a front.Cluster, safe for concurrent use.
type Node struct {
	id, name, prefix string
	log              *slog.Logger // for what other programs may cause
	metrics          *metrics.Cluster
	sealer           *sealer
	nc               *nats.Conn
	maxPart          int
	asks             chan *nats.Msg
	subscribed       *nats.Subscription // to frames
	stop             context.CancelFunc
	leave            sync.Once
	running          sync.WaitGroup
	serving, bodies  atomic.Int64 // requests of other replicas, and bytes of those that are not complete

	mu        sync.RWMutex // guards what follows
	members   map[string]*member
	exchanges map[exchangeID]*exchange
	parts     map[string][]*front.Part // by server; the lists are not changed
	number    uint64                   // of the last exchange, ask or heartbeat
	joining   bool
	up        bool // NATS is connected
	fresh     int  // ticks until all replicas must have been heard after NATS was away
	away      int  // ticks without NATS
	closed    bool
}

var _ front.Cluster = (*Node)(nil)

// joinTime is how long Join listens for other replicas: each is heard once a second.
const joinTime = 2500 * time.Millisecond

// Join makes this process a replica of a cluster, which takes 2.5 seconds. It fails if NATS
// cannot be reached for 10 seconds, or refuses the credentials, and if another replica has
// the name. Later, the Node connects again by itself. The caller must Close it.
func Join(ctx context.Context, o Options) (*Node, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	id := rand.Text()[:idBytes]
	n := &Node{
		id: id, name: o.Replica, prefix: "mcp." + o.Name + ".", sealer: newSealer(o.Key, o.Name),
		log:  throttle.NewLines().Logger(o.Logger),
		asks: make(chan *nats.Msg, 1024), joining: true, up: true,
		members:   map[string]*member{id: {id: id, heartbeat: heartbeat{Name: o.Replica}}},
		exchanges: make(map[exchangeID]*exchange), parts: make(map[string][]*front.Part),
	}
	if n.nc, err = n.connect(ctx, o); err != nil {
		return nil, err
	}
	if n.metrics, err = metrics.NewCluster(o.Registry); err != nil {
		n.nc.Close()
		return nil, err
	}
	if n.maxPart = min(maxPart, int(n.nc.MaxPayload())-headBytes-sealBytes); n.maxPart < 4<<10 {
		err = fmt.Errorf("the max_payload of NATS is %d bytes: replicas need 8 KiB or more", n.nc.MaxPayload())
	}
	running, stop := context.WithCancel(context.Background())
	n.stop = stop
	subscribed, subErr := n.nc.Subscribe(n.frames(id, "*"), n.dispatch)
	_, hbErr := n.nc.Subscribe(n.prefix+"hb", n.dispatch)
	n.subscribed, err = subscribed, errors.Join(err, subErr, hbErr)
	n.running.Go(func() { n.run(running) })
	if err = errors.Join(err, n.introduce(ctx)); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// introduce listens for the other replicas, fails if one has the same name, and tells them
// that this one serves.
func (n *Node) introduce(ctx context.Context) error {
	select {
	case <-time.After(joinTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	n.mu.Lock()
	heard, same := n.members[n.id].number > 0, []string(nil)
	for _, m := range n.members {
		first := !m.Joining || m.id < n.id // of two that join at once, one may
		if m.id != n.id && m.Name == n.name && first && !m.silent() {
			same = append(same, m.id)
		}
	}
	n.mu.Unlock()
	if !heard {
		return fmt.Errorf("NATS does not pass messages on: its account must be allowed to publish and subscribe %s>", n.prefix)
	}
	for _, id := range same {
		if _, err := n.ask(ctx, n.frames(id, "q")); err == nil { // its heartbeats are not old ones that somebody repeats
			return fmt.Errorf("replica %s (%s) of the cluster already runs: give each replica a name of its own", n.name, id)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.joining = false
	n.beatLocked(false)
	return nil
}

// Close leaves the cluster: it ends the requests that are forwarded, and waits for the
// handlers of those from other replicas. It is idempotent.
func (n *Node) Close() {
	n.leave.Do(func() {
		n.stop()
		n.unsubscribe()
		n.mu.Lock()
		n.closed = true
		n.mu.Unlock()
		for _, x := range n.open() {
			x.abort(errClosed)
		}
		n.running.Wait()
		_ = n.nc.FlushTimeout(time.Second) // if NATS is away, the others notice in any case
		n.nc.Close()
		n.metrics.Unregister()
	})
}

// unsubscribe tells the others that this replica leaves, and takes the frames that NATS has
// for it. What comes later, NATS refuses: so it goes elsewhere, and is not lost.
func (n *Node) unsubscribe() {
	n.mu.Lock()
	n.beatLocked(true)
	n.mu.Unlock()
	taken := make(chan struct{})
	if n.subscribed == nil { // Join has failed
		return
	}
	n.subscribed.SetClosedHandler(func(string) { close(taken) })
	if n.subscribed.Drain() != nil {
		return
	}
	select {
	case <-taken:
	case <-time.After(time.Second):
	}
}

// ID returns the part of ids that names this replica.
func (n *Node) ID() string { return n.id }

// Attach makes part reachable for the other replicas.
func (n *Node) Attach(server string, part front.Part) (detach func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.parts[server] = append(slices.Clip(n.parts[server]), &part)
	return func() { n.detach(server, &part) }
}

// detach ends the streams of a server that this replica no longer serves.
func (n *Node) detach(server string, part *front.Part) {
	n.mu.Lock()
	n.parts[server] = slices.DeleteFunc(slices.Clone(n.parts[server]), func(p *front.Part) bool { return p == part })
	maps.DeleteFunc(n.parts, func(_ string, list []*front.Part) bool { return len(list) == 0 })
	served := n.parts[server] != nil
	n.mu.Unlock()
	for _, x := range n.open() {
		if !served && x.stream == server {
			x.abort(errDraining)
		}
	}
}

// part returns the part of a server that has a connection, else the last one; nil: there is
// none.
func (n *Node) part(server, id string) (part *front.Part, has bool) {
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
func (n *Node) draining(server string) bool {
	part, _ := n.part(server, "")
	return part == nil || part.Draining()
}

// Adopt makes this replica get the requests for a session whose own replica is gone.
func (n *Node) Adopt(server, id string) (release func()) {
	sub, err := n.nc.ChanSubscribe(n.adopted(server, id), n.asks)
	if err != nil {
		return func() {} // the node is closed
	}
	return func() { _ = sub.Unsubscribe() }
}
