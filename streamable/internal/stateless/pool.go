package stateless

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/deadline"
	"github.com/mcp-sse/mcp-sse/internal/subnet"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// key tells clients apart: requests with the same key may share connections.
type key [sha256.Size]byte

// owner is who has a share of the connections: a principal, or else a network. What else
// tells clients apart is what they say of themselves, and so can be made up.
type owner struct{ Principal, Network string }

func newOwner(c connstate.Client, q *request) owner {
	if q.principal != "" {
		return owner{Principal: q.principal}
	}
	return owner{Network: subnet.Of(c.Addr).String()}
}

// newKey returns the key of a request's client, which writes its capabilities alike each
// time.
func newKey(o owner, c connstate.Client, q *request) key {
	parts, _ := json.Marshal(struct { // of strings, it always has a JSON form
		owner
		Capabilities, Info string
		Local              bool
		Header             map[string][]string
	}{o, string(q.capabilities), string(q.info), c.Local, c.Header})
	return sha256.Sum256(parts)
}

// group is the connections of one client, and what they have in common.
type group struct {
	links []*link
	tools tools
}

// pool holds the connections of all clients, bounded in number, and those of one owner
// to a share of that.
type pool struct {
	h *Handler

	mu     sync.Mutex // guards what follows, and the pool's fields of each link
	groups map[key]*group
	links  int
	owned  map[owner]int // links of each owner
	idle   deadline.Set[*link]
	freed  chan struct{} // closed when a connection has room for a call
}

func newPool(h *Handler) *pool {
	p := &pool{h: h, groups: make(map[key]*group), owned: make(map[owner]int), freed: make(chan struct{})}
	p.idle = deadline.NewSet[*link](p.expire)
	return p
}

var (
	errNoConnection = errors.New("too many connections for this version of the protocol")
	errNoShare      = errors.New("too many connections of this client, under all its names")
	errNoRoom       = errors.New("too many calls of this client wait for the server")
)

// take returns a connection of the client with that key, new or used, which counts as
// that owner's. Among the calls that
// may ask the client something, exclusive ones have their connection to themselves; take
// waits for one of those. The caller must release the connection.
func (p *pool) take(ctx context.Context, o owner, k key, exclusive bool) (l *link, fresh bool, err error) {
	var late <-chan time.Time // nil until take has to wait
	for {
		l, fresh, freed, err := p.tryTake(o, k, exclusive)
		if l != nil || err != nil {
			return l, fresh, err
		}
		if late == nil {
			late = time.After(callWait)
		}
		select {
		case <-freed:
		case <-late:
			return nil, false, errNoRoom
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// tryTake is the locked step of take. It returns neither a connection nor an error if the
// caller must wait until freed is closed.
func (p *pool) tryTake(o owner, k key, exclusive bool) (l *link, fresh bool, freed chan struct{}, err error) {
	var evicted *link
	defer func() {
		if evicted != nil {
			evicted.close(metrics.ClosedIdle) // which takes the lock
		}
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[k]
	if g != nil {
		if i := slices.IndexFunc(g.links, func(l *link) bool { return !exclusive || !l.busy }); i >= 0 {
			p.useLocked(g.links[i], exclusive)
			return g.links[i], false, nil, nil
		}
		if len(g.links) >= p.h.opts.MaxCalls {
			return nil, false, p.freed, nil
		}
	}
	if evicted, err = p.makeRoomLocked(o); err != nil {
		return nil, false, nil, err
	}
	if g = p.groups[k]; g == nil { // the last of its connections may have been evicted
		g = &group{}
		p.groups[k] = g
	}
	l = newLink(p.h, k, g)
	l.owner = o
	g.links = append(g.links, l)
	p.links++
	p.owned[o]++
	p.useLocked(l, exclusive)
	return l, true, nil, nil
}

// makeRoomLocked makes room for one more connection of an owner. It returns the one that
// it has removed for that, if any, which the caller must close.
func (p *pool) makeRoomLocked(o owner) (evicted *link, err error) {
	share := max(p.h.opts.MaxConnections/8, p.h.opts.MaxCalls)
	switch {
	case p.owned[o] >= share:
		evicted, err = p.evictLocked(func(l *link) bool { return l.owner == o }), errNoShare
	case p.links >= p.h.opts.MaxConnections:
		evicted, err = p.evictLocked(anyLink), errNoConnection
	default:
		return nil, nil
	}
	if evicted != nil {
		err = nil
	}
	return evicted, err
}

func anyLink(*link) bool { return true }

func (p *pool) useLocked(l *link, exclusive bool) {
	l.users++
	l.busy = l.busy || exclusive
	p.idle.Drop(&l.idle)
}

// release gives back what take returned.
func (p *pool) release(l *link, exclusive bool) {
	p.mu.Lock()
	l.users--
	if exclusive {
		l.busy = false
		close(p.freed)
		p.freed = make(chan struct{})
	}
	unused := l.users == 0 && !l.removed
	end := unused && l.single
	if unused && !end {
		l.since = time.Now()
		p.idle.Put(&l.idle, l, p.idle.Now()+p.h.opts.IdleTimeout)
	}
	p.mu.Unlock()
	if end {
		l.close(metrics.ClosedClient)
	}
}

// expire closes the connections that have been unused for too long.
func (p *pool) expire() {
	p.mu.Lock()
	due := p.idle.Due()
	for _, e := range due {
		p.removeLocked(e.Owner)
	}
	p.mu.Unlock()
	for _, e := range due {
		e.Owner.close(metrics.ClosedIdle)
	}
}

// evict closes a connection for which the registry may open one of that owner, and
// reports whether there is one. A limit of an address costs nobody else a connection.
func (p *pool) evict(o owner, refused error) bool {
	limit, _ := errors.AsType[*connstate.LimitError](refused)
	p.mu.Lock()
	l := p.evictLocked(func(l *link) bool { return l.owner == o })
	if l == nil && limit != nil && limit.Reason == metrics.RejectedMaxConnections {
		l = p.evictLocked(anyLink)
	}
	p.mu.Unlock()
	if l != nil {
		l.close(metrics.ClosedIdle)
	}
	return l != nil
}

// evictLocked removes and returns, of those that may go, the connection that has been
// unused for longest; nil if all are in use.
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

func (p *pool) removeLocked(l *link) {
	if l.removed {
		return
	}
	l.removed = true
	p.idle.Drop(&l.idle)
	p.links--
	if p.owned[l.owner]--; p.owned[l.owner] == 0 {
		delete(p.owned, l.owner)
	}
	g := p.groups[l.key]
	g.links = slices.DeleteFunc(g.links, func(other *link) bool { return other == l })
	if len(g.links) == 0 {
		delete(p.groups, l.key)
	}
	close(p.freed)
	p.freed = make(chan struct{})
}

// connect returns an initialized connection for a request, which the caller must release.
// Without one it returns why, or has answered the request.
func (h *Handler) connect(a *reply, q *request, exclusive bool) (*link, *front.Refusal) {
	client := h.front.Client(a.r, q.principal, metrics.TransportStreamable)
	client.Quiet, client.Dialect, client.Context = true, connstate.EventMessage, q.passed
	o := newOwner(client, q)
	k := newKey(o, client, q)
	single := q.passed != nil && !h.opts.SamePeer
	if single { // what is passed on may differ from one request to the next
		_, _ = rand.Read(k[:]) // never fails
	}
	l, fresh, err := h.pool.take(a.r.Context(), o, k, exclusive)
	switch {
	case err != nil && a.over():
		return nil, nil
	case err != nil:
		return nil, front.RefusedBusy(err)
	}
	if fresh {
		l.single = single
		l.open(client, q)
	}
	ready, why := l.awaitReady(a, q)
	if !ready {
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
	status := http.StatusServiceUnavailable
	if limit.Reason == metrics.RejectedPerIP || limit.Reason == metrics.RejectedRate {
		status = http.StatusTooManyRequests
	}
	return front.RefusedWith(status, cmp.Or(map[string]string{metrics.RejectedBudget: metrics.PostBudget}[limit.Reason], metrics.PostBadRequest),
		jsonrpc.ReasonError(limit.Message, "server_busy", true))
}
