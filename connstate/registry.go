package connstate

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/signedid"
	"github.com/mcp-sse/mcp-sse/internal/subnet"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Limits bound how many connections a Registry takes. Zero means no limit. MaxPerIP and Rate do not count clients in
// this process: the gateway in front of such a client has counted it.
type Limits struct {
	// MaxConnections bounds the open connections.
	MaxConnections int
	// MaxPerIP bounds the open connections of one origin: a principal at one address, or
	// at one /64 for IPv6. Without authentication all at an address have no principal.
	MaxPerIP int
	// Rate bounds the new connections a second of one origin, after Burst at once.
	// Loopback addresses are exempt, but not that of a proxy that is not trusted.
	Rate  float64
	Burst int
}

// LimitError reports that a connection was not taken.
type LimitError struct {
	// Reason is the limit: metrics.RejectedMaxConnections, RejectedBudget,
	// RejectedPerIP, RejectedRate or RejectedDraining.
	Reason string
	// Message says which limit it is, for the client.
	Message string
	// RetryAfter is how long to wait before another attempt.
	RetryAfter time.Duration
}

// Error returns the message.
func (e *LimitError) Error() string { return e.Message }

// ErrTaken reports that an id cannot be used: a connection has it.
var ErrTaken = errors.New("a connection has this id")

// Registry finds, limits and drains connections. It is safe for concurrent use.
type Registry struct {
	opts  Options
	over  atomic.Pointer[map[Transport]*Options] // of new connections, with the Metrics of their transport
	conns sync.Map                               // id → *Connection
	open  atomic.Int64

	mu     sync.Mutex // guards what follows
	limits Limits
	perIP  map[origin]int
	opened map[origin]int // since the last Usage; nil unless Options.Clustered
	rates  *rates

	elsewhere     int64          // open connections of the other replicas
	openElsewhere map[uint64]int // by origin

	draining   bool
	empty      chan struct{} // closed when draining and no connection is left
	closeEmpty func()
}

// NewRegistry returns a registry without connections.
func NewRegistry(limits Limits, opts Options) *Registry {
	opts = opts.withDefaults()
	r := &Registry{opts: opts, perIP: make(map[origin]int), empty: make(chan struct{})}
	r.closeEmpty = sync.OnceFunc(func() { close(r.empty) })
	if opts.Clustered {
		r.opened = make(map[origin]int)
	}
	r.Reconfigure(limits, opts.GateTimeout, opts.RestTimeout, opts.AnnounceDelay)
	return r
}

// Reconfigure gives the connections that are opened from now on other limits, and these
// times of the Options. It closes no connection.
func (r *Registry) Reconfigure(limits Limits, gateTimeout, restTimeout, announceDelay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if limits.Rate != r.limits.Rate || limits.Burst != r.limits.Burst {
		r.rates = newRates(limits.Rate, limits.Burst)
	}
	r.limits = limits
	over := make(map[Transport]*Options)
	for _, transport := range []Transport{"", TransportSSE, TransportStreamable, TransportStdio, TransportInProcess} {
		own := r.opts
		if transport == TransportInProcess { // the gateway in front writes these lines
			own.Audit, own.SlowRequest = nil, 0
		}
		own.Metrics = r.opts.Metrics.Over(string(transport))
		own.GateTimeout, own.RestTimeout, own.AnnounceDelay = gateTimeout, restTimeout, announceDelay
		over[transport] = &own
	}
	r.over.Store(&over)
}

// Open makes a connection for a client. It fails with a *LimitError. The caller must
// Remove the connection.
func (r *Registry) Open(client Client) (*Connection, error) { return r.OpenAs(client, "", nil) }

// OpenAs is Open with the id of an earlier connection, which IDs verifies; empty: as
// in Open. It fails with ErrTaken if a connection has the id. Where there is no room it calls
// evict, which may make some and reports whether it has; nil: nobody makes room. A client
// that opens connections too fast is refused before that.
func (r *Registry) OpenAs(client Client, id string, evict func() bool) (*Connection, error) {
	if id == "" {
		id = r.opts.IDs.New(client.Principal)
	}
	opts := (*r.over.Load())[client.Transport]
	c := newConnection(id, client, opts)
	c.span = c.startSpan("connection opened")
	taken, err := r.addConnection(c, true)
	if err != nil && err.Reason == metrics.RejectedMaxConnections && evict != nil && evict() {
		taken, err = r.addConnection(c, false)
	}
	switch {
	case taken:
		EndSpan(c.span, "taken", ErrTaken.Error())
		return nil, ErrTaken
	case err != nil:
		EndSpan(c.span, err.Reason, err.Error())
		opts.Metrics.ConnectionRejected(err.Reason)
		return nil, err
	}
	c.span.End() // a connection may last for days
	opts.Metrics.ConnectionOpened()
	opts.Metrics.StateChanged("", Initializing.String())
	return c, nil
}

// addConnection adds a connection, or says that its id is taken or which limit forbids it. The first
// attempt counts towards the rate. It holds the lock that Drain takes, so All finds every
// connection added before Drain.
func (r *Registry) addConnection(c *Connection, first bool) (taken bool, _ *LimitError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, taken = r.conns.Load(c.id)
	if taken {
		return true, nil
	}
	if err := r.admitLocked(&c.client, first); err != nil {
		return false, err
	}
	r.open.Add(1)
	if c.client.hasOrigin() {
		r.perIP[r.originOf(&c.client)]++
	}
	r.conns.Store(c.id, c)
	return false, nil
}

// origin is what the limits of one address count: a principal at a network. So users who
// share an address, such as an office, but have their own tokens do not use up each other's
// limit, nor do users who share a token but not an address.
type origin struct {
	principal string
	network   netip.Prefix
	hash      uint64 // with Options.Clustered, of both, which then are empty: the same on all replicas
}

// hasOrigin reports whether the limits of one address count the client.
func (c *Client) hasOrigin() bool { return c.Transport != TransportInProcess }

func (r *Registry) originOf(client *Client) origin {
	network := subnet.Of(client.Addr)
	if r.opts.Clustered {
		return origin{hash: r.opts.IDs.Hash(client.Principal, network.String())}
	}
	return origin{principal: client.Principal, network: network}
}

// fullWait is how long a client is told to wait where there is no room for it.
const fullWait = 5 * time.Second

// admitLocked returns the limit that forbids another connection of a client. The rate comes
// first: who opens connections too fast must not learn, at the cost of all, that there is no
// room.
func (r *Registry) admitLocked(client *Client, first bool) *LimitError {
	from, limits := r.originOf(client), r.limits
	refuse := func(reason string, wait time.Duration, format string, args ...any) *LimitError {
		return &LimitError{reason, fmt.Sprintf(format, args...), wait}
	}
	if r.draining {
		return refuse(metrics.RejectedDraining, fullWait, "the gateway is shutting down")
	}
	isNear := client.Addr.Unmap().IsLoopback() && !client.Proxied || !client.hasOrigin()
	if !isNear && first {
		if wait := r.rates.useConnect(from, time.Now()); wait > 0 {
			return refuse(metrics.RejectedRate, wait,
				"connecting too fast: the limit is %g connections a second from one address", limits.Rate)
		}
		if r.opened != nil && limits.Rate > 0 {
			r.opened[from]++
		}
	}
	switch {
	case limits.MaxConnections > 0 && r.open.Load()+r.elsewhere >= int64(limits.MaxConnections):
		return refuse(metrics.RejectedMaxConnections, fullWait, "too many connections: the limit is %d",
			limits.MaxConnections)
	case r.opts.Budget.Check(metrics.HeldConnection):
		return refuse(metrics.RejectedBudget, fullWait, "%v", ErrBusy)
	case client.hasOrigin() && limits.MaxPerIP > 0 && r.perIP[from]+r.openElsewhere[from.hash] >= limits.MaxPerIP:
		return refuse(metrics.RejectedPerIP, fullWait, "too many connections from your address: the limit is %d",
			limits.MaxPerIP)
	}
	return nil
}

// Find returns the open connection with that id.
func (r *Registry) Find(id string) (*Connection, bool) {
	v, _ := r.conns.Load(id)
	c, ok := v.(*Connection)
	return c, ok
}

// IDs returns what makes the ids of connections, and knows those of earlier ones: a
// connection whose id it verifies may be gone, or one of another process with the same key.
func (r *Registry) IDs() *signedid.Issuer { return r.opts.IDs }

// Remove forgets a closed connection.
func (r *Registry) Remove(c *Connection) {
	if _, ok := r.conns.LoadAndDelete(c.id); !ok {
		return
	}
	s := c.Snapshot()
	c.opts.Metrics.StateChanged(s.State.String(), "")
	c.opts.Metrics.ConnectionClosed(string(s.Reason))
	if !s.Ready.IsZero() {
		c.opts.Metrics.ConnectionLasted(string(s.Reason), time.Since(s.Opened))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.client.hasOrigin() {
		from := r.originOf(&c.client)
		r.perIP[from]--
		if r.perIP[from] <= 0 {
			delete(r.perIP, from)
		}
	}
	if r.open.Add(-1) == 0 && r.draining {
		r.closeEmpty()
	}
}

// Len returns the number of open connections.
func (r *Registry) Len() int { return int(r.open.Load()) }

// All returns the open connections, in no order.
func (r *Registry) All() []*Connection {
	var all []*Connection
	r.conns.Range(func(_, v any) bool {
		all = append(all, v.(*Connection))
		return true
	})
	return all
}

// Draining reports whether Drain has been called.
func (r *Registry) Draining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining
}

// Drain refuses new connections from now on. The returned channel is closed when
// no connection is left.
func (r *Registry) Drain() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
	if r.open.Load() == 0 {
		r.closeEmpty()
	}
	return r.empty
}
