package statelessclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/idle"
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
	return fmt.Sprintf("%q %q %q %q %t %q %q %q", q.principal, network, q.meta.Capabilities, q.meta.ClientInfo, c.Local,
		c.Header, c.Credentials, c.Narrow.Key())
}

// group is the connections of one client, and what they have in common.
type group struct {
	conns []*pooledConn
	tools stateless.Tools
}

// pool holds the connections of all clients. The registry bounds their number.
type pool struct {
	maxCalls int

	mu     sync.Mutex // guards what follows, and the pool's fields of each pooledConn
	groups map[string]*group
	unused idle.List[*pooledConn]
	freed  chan struct{} // closed when a connection has room for a call
}

var errNoRoom = errors.New("too many calls of this client wait for the server")

// takeConnection returns a connection of the client with that key, new or used. Exclusive calls have
// their connection to themselves among such calls; takeConnection waits for one. The caller must
// release the connection.
func (p *pool) takeConnection(ctx context.Context, key string, exclusive bool) (pc *pooledConn, fresh bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callWait, errNoRoom)
	defer cancel()
	for {
		pc, fresh, freed := p.tryTake(key, exclusive)
		if pc != nil {
			return pc, fresh, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// tryTake is the locked step of takeConnection. Without a connection the caller must wait until freed
// is closed.
func (p *pool) tryTake(key string, exclusive bool) (pc *pooledConn, fresh bool, freed chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[key]
	if g == nil {
		g = &group{}
		p.groups[key] = g
	}
	i := slices.IndexFunc(g.conns, func(pc *pooledConn) bool { return !exclusive || !pc.busy })
	switch {
	case i >= 0:
		pc = g.conns[i]
	case len(g.conns) >= p.maxCalls:
		return nil, false, p.freed
	default:
		pc, fresh = newPooledConn(key, g), true
		g.conns = append(g.conns, pc)
	}
	pc.use.Enter()
	pc.busy = pc.busy || exclusive
	return pc, fresh, nil
}

func (p *pool) putBack(pc *pooledConn, exclusive bool) {
	p.mu.Lock()
	if exclusive {
		pc.busy = false
		p.signalLocked()
	}
	last := p.unused.Leave(pc, &pc.use)
	p.mu.Unlock()
	if last && pc.c.Connection != nil {
		pc.c.Close(connstate.ClosedClient)
	}
}

// retire closes all connections, those in use when no request uses them any more. Later
// requests get others.
func (p *pool) retire() {
	var unused []*pooledConn
	p.mu.Lock()
	for _, g := range p.groups {
		for _, pc := range slices.Clone(g.conns) {
			if p.removeLocked(pc) {
				unused = append(unused, pc)
			}
		}
	}
	p.mu.Unlock()
	for _, pc := range unused {
		pc.c.Close(connstate.ClosedIdle)
	}
}

// signalLocked wakes the calls that wait for a connection.
func (p *pool) signalLocked() {
	close(p.freed)
	p.freed = make(chan struct{})
}

// expire closes a connection that is idle, and returns when to look again.
func (pc *pooledConn) expire() time.Duration {
	pc.h.pool.mu.Lock()
	left := pc.h.opts.IdleTimeout - pc.use.Idle()
	if left <= 0 {
		pc.h.pool.removeLocked(pc)
	}
	pc.h.pool.mu.Unlock()
	if left <= 0 {
		pc.c.Close(connstate.ClosedIdle)
	}
	return left
}

// evict closes the connection that has been unused for longest, to make room for another
// one in the registry. It reports whether there is one.
func (p *pool) evict() bool {
	p.mu.Lock()
	oldest, found := p.unused.Longest(func(*pooledConn) bool { return true })
	if found {
		p.removeLocked(oldest)
	}
	p.mu.Unlock()
	return found && oldest.c.Close(connstate.ClosedIdle)
}

func (p *pool) remove(pc *pooledConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeLocked(pc)
}

// removeLocked takes a connection out of the pool, if it is there: no other request gets it. It
// reports whether none uses it.
func (p *pool) removeLocked(pc *pooledConn) (unused bool) {
	if i := slices.Index(pc.group.conns, pc); i >= 0 {
		pc.group.conns = slices.Delete(pc.group.conns, i, i+1)
		if len(pc.group.conns) == 0 {
			delete(p.groups, pc.key)
		}
		p.signalLocked()
	}
	return pc.use.End()
}

// connect returns an initialized connection for a request, which the caller must release,
// or why there is none.
func (h *Handler) connect(a *reply, q *request, exclusive bool) (*pooledConn, *httpcheck.Refusal) {
	client := h.checks.Client(a.r, q.principal, connstate.TransportStreamable)
	client.Quiet, client.Dialect, client.Context = true, connstate.EventMessage, q.passed
	var refusal *httpcheck.Refusal
	if client.Narrow, refusal = h.checks.Narrow(a.r); refusal != nil {
		return nil, refusal
	}
	var pc *pooledConn
	// The headers that are passed on may differ from one request to the next, and nothing may tell a client
	// behind a proxy from others.
	fresh := q.passed != nil && !h.opts.SamePeer || q.principal == "" && client.Proxied
	if fresh {
		pc = newPooledConn("", &group{})
		pc.use.Enter()
		pc.use.End() // it is not in the pool
	} else {
		var err error
		pc, fresh, err = h.pool.takeConnection(a.r.Context(), keyOf(client, q), exclusive)
		switch {
		case err != nil && a.isOver():
			return nil, gone
		case err != nil:
			return nil, httpcheck.RefusedWith(http.StatusServiceUnavailable, metrics.PostBusy,
				jsonrpc.ReasonError(err.Error(), "server_busy", true))
		}
	}
	if fresh {
		pc.open(h, client, q)
	}
	if why := pc.awaitReady(a, q); why != nil {
		h.pool.putBack(pc, exclusive)
		return nil, why
	}
	return pc, nil
}
