package statelessclient

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/internal/subnet"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// keyOf returns what tells clients apart: requests with the same key may share connections.
// A client writes its capabilities alike each time.
func keyOf(c connstate.Client, q *request) string {
	network := ""
	if q.principal == "" {
		network = subnet.Of(c.Addr).String()
	}
	key, _ := json.Marshal(struct { // of strings, it always has a JSON form
		Principal, Network, Capabilities, Info string
		Local                                  bool
		Header                                 map[string][]string
	}{q.principal, network, string(q.meta.Capabilities), string(q.meta.ClientInfo), c.Local, c.Header})
	return string(key)
}

// group is the connections of one client, and what they have in common.
type group struct {
	links   []*link
	tools   stateless.Tools
	listing singleflight.Group // of the handler's own tools/list

	mu     sync.Mutex
	failed time.Time // when the last one failed
}

// pool holds the connections of all clients, bounded in number.
type pool struct {
	idle               time.Duration
	maxLinks, maxCalls int

	mu     sync.Mutex // guards what follows, and the pool's fields of each link
	groups map[string]*group
	links  int
	freed  chan struct{} // closed when a connection has room for a call
}

func newPool(idle time.Duration) *pool {
	return &pool{
		idle: idle, maxLinks: maxLinks, maxCalls: maxCalls,
		groups: make(map[string]*group), freed: make(chan struct{}),
	}
}

var (
	errNoConnection = errors.New("too many connections for this version of the protocol")
	errNoRoom       = errors.New("too many calls of this client wait for the server")
)

// take returns a connection of the client with that key, new or used. Exclusive calls have
// their connection to themselves among such calls; take waits for one. The caller must
// release the connection.
func (p *pool) take(ctx context.Context, key string, exclusive bool) (l *link, fresh bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callWait, errNoRoom)
	defer cancel()
	for {
		l, fresh, freed, err := p.tryTake(key, exclusive)
		if l != nil || err != nil {
			return l, fresh, err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// tryTake is the locked step of take. It returns neither a connection nor an error if the
// caller must wait until freed is closed.
func (p *pool) tryTake(key string, exclusive bool) (l *link, fresh bool, freed chan struct{}, err error) {
	var evicted *link
	defer func() {
		if evicted != nil {
			evicted.close(metrics.ClosedIdle) // which takes the lock
		}
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[key]
	if g != nil {
		if i := slices.IndexFunc(g.links, func(l *link) bool { return !exclusive || !l.busy }); i >= 0 {
			p.useLocked(g.links[i], exclusive)
			return g.links[i], false, nil, nil
		}
		if len(g.links) >= p.maxCalls {
			return nil, false, p.freed, nil
		}
	}
	if p.links >= p.maxLinks {
		if evicted = p.evictLocked(func(*link) bool { return true }); evicted == nil {
			return nil, false, nil, errNoConnection
		}
	}
	if g = p.groups[key]; g == nil { // the last of its connections may have been evicted
		g = &group{}
		p.groups[key] = g
	}
	l = newLink(key, g)
	g.links = append(g.links, l)
	p.links++
	p.useLocked(l, exclusive)
	return l, true, nil, nil
}

func (p *pool) useLocked(l *link, exclusive bool) {
	l.users++
	l.busy = l.busy || exclusive
	if l.idle != nil {
		l.idle.Stop()
	}
}

// release gives back what take returned.
func (p *pool) release(l *link, exclusive bool) {
	p.mu.Lock()
	l.users--
	if exclusive {
		l.busy = false
		p.signalLocked()
	}
	unused := l.users == 0 && !l.removed
	if unused && !l.single {
		l.since = time.Now()
		l.idle = time.AfterFunc(p.idle, func() { p.expire(l) })
	}
	p.mu.Unlock()
	if unused && l.single {
		l.close(metrics.ClosedClient)
	}
}

// signalLocked wakes the calls that wait for a connection.
func (p *pool) signalLocked() {
	close(p.freed)
	p.freed = make(chan struct{})
}

// expire closes a connection that has been unused for too long.
func (p *pool) expire(l *link) {
	p.mu.Lock()
	expired := l.users == 0 && time.Since(l.since) >= p.idle && p.removeLocked(l)
	p.mu.Unlock()
	if expired {
		l.close(metrics.ClosedIdle)
	}
}

// evict closes a connection to make room for another one in the registry, which has
// refused that, and reports whether there is one. A limit of an address costs nobody else
// a connection.
func (p *pool) evict(client connstate.Client, refused error) bool {
	limit, ok := errors.AsType[*connstate.LimitError](refused)
	if !ok {
		return false
	}
	p.mu.Lock()
	l := p.evictLocked(func(l *link) bool {
		other := l.c.Client()
		return limit.Reason == metrics.RejectedMaxConnections || other.Principal == client.Principal && other.Addr == client.Addr
	})
	p.mu.Unlock()
	if l != nil {
		l.close(metrics.ClosedIdle)
	}
	return l != nil
}

// evictLocked removes and returns, of the connections that may go, the one that has been
// unused for longest; nil if there is none. The caller must close it without the lock.
func (p *pool) evictLocked(may func(*link) bool) (oldest *link) {
	for _, g := range p.groups {
		for _, l := range g.links {
			if l.users == 0 && may(l) && (oldest == nil || l.since.Before(oldest.since)) {
				oldest = l
			}
		}
	}
	if oldest != nil {
		p.removeLocked(oldest)
	}
	return oldest
}

// remove takes a connection out of the pool.
func (p *pool) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeLocked(l)
}

// removeLocked reports whether the connection was in the pool.
func (p *pool) removeLocked(l *link) bool {
	if l.removed {
		return false
	}
	l.removed = true
	p.links--
	g := p.groups[l.key]
	g.links = slices.DeleteFunc(g.links, func(other *link) bool { return other == l })
	if len(g.links) == 0 {
		delete(p.groups, l.key)
	}
	p.signalLocked()
	return true
}

// connect returns an initialized connection for a request, which the caller must release.
// Without one it returns why, or has answered the request.
func (h *Handler) connect(a *reply, q *request, exclusive bool) (*link, *front.Refusal) {
	client := h.front.Client(a.r, q.principal, metrics.TransportStreamable)
	client.Quiet, client.Dialect, client.Context = true, connstate.EventMessage, q.passed
	key := keyOf(client, q)
	single := q.passed != nil && !h.opts.SamePeer
	if single { // what is passed on may differ from one request to the next
		key = rand.Text()
	}
	l, fresh, err := h.pool.take(a.r.Context(), key, exclusive)
	switch {
	case err != nil && a.over():
		return nil, nil
	case err != nil:
		return nil, front.RefusedBusy(err)
	}
	if fresh {
		l.single = single
		l.open(h, client, q.meta)
	}
	if ready, why := l.awaitReady(a, q); !ready {
		h.pool.release(l, exclusive)
		return nil, why
	}
	return l, nil
}

// limitRefusal is the refusal of a request for which the registry opens no connection.
func limitRefusal(err error) *front.Refusal {
	limit, ok := errors.AsType[*connstate.LimitError](err)
	if !ok {
		return refused(http.StatusInternalServerError, jsonrpc.ReasonError("the connection could not be opened", "closed", true))
	}
	status, reason := http.StatusServiceUnavailable, metrics.PostBadRequest
	switch limit.Reason {
	case metrics.RejectedPerIP, metrics.RejectedRate:
		status = http.StatusTooManyRequests
	case metrics.RejectedBudget:
		reason = metrics.PostBudget
	}
	return front.RefusedWith(status, reason, jsonrpc.ReasonError(limit.Message, "server_busy", true))
}
