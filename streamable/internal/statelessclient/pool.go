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
	return fmt.Sprintf("%q %q %q %q %t %q %q", q.principal, network, q.meta.Capabilities, q.meta.ClientInfo, c.Local,
		c.Header, c.Credentials)
}

// group is the connections of one client, and what they have in common.
type group struct {
	links []*link
	tools stateless.Tools
}

// pool holds the connections of all clients. The registry bounds their number.
type pool struct {
	maxCalls int

	mu     sync.Mutex // guards what follows, and the pool's fields of each link
	groups map[string]*group
	freed  chan struct{} // closed when a connection has room for a call
}

var errNoRoom = errors.New("too many calls of this client wait for the server")

// take returns a connection of the client with that key, new or used. Exclusive calls have
// their connection to themselves among such calls; take waits for one. The caller must
// release the connection.
func (p *pool) take(ctx context.Context, key string, exclusive bool) (l *link, fresh bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callWait, errNoRoom)
	defer cancel()
	for {
		l, fresh, freed := p.tryTake(key, exclusive)
		if l != nil {
			return l, fresh, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// tryTake is the locked step of take. Without a connection the caller must wait until freed
// is closed.
func (p *pool) tryTake(key string, exclusive bool) (l *link, fresh bool, freed chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[key]
	if g == nil {
		g = &group{}
		p.groups[key] = g
	}
	i := slices.IndexFunc(g.links, func(l *link) bool { return !exclusive || !l.busy })
	switch {
	case i >= 0:
		l = g.links[i]
	case len(g.links) >= p.maxCalls:
		return nil, false, p.freed
	default:
		l, fresh = newLink(key, g), true
		g.links = append(g.links, l)
	}
	l.users++
	l.busy = l.busy || exclusive
	if l.idle != nil {
		l.idle.Stop()
	}
	return l, fresh, nil
}

func (p *pool) release(l *link, exclusive bool) {
	p.mu.Lock()
	l.users--
	if exclusive {
		l.busy = false
		p.signalLocked()
	}
	over := l.users == 0 && l.retired
	if l.users == 0 && slices.Contains(l.group.links, l) {
		l.since = time.Now()
		l.idle = time.AfterFunc(l.h.opts.IdleTimeout, func() { p.expire(l) })
	}
	p.mu.Unlock()
	if over && l.c.Connection != nil {
		l.c.Close(connstate.ClosedClient)
	}
}

// retire closes all connections, those in use when no request uses them any more. Later
// requests get others.
func (p *pool) retire() {
	var unused []*link
	p.mu.Lock()
	for _, g := range p.groups {
		for _, l := range slices.Clone(g.links) {
			p.removeLocked(l)
			l.retired = true
			if l.users == 0 {
				unused = append(unused, l)
			}
		}
	}
	p.mu.Unlock()
	for _, l := range unused {
		l.c.Close(connstate.ClosedIdle)
	}
}

// signalLocked wakes the calls that wait for a connection.
func (p *pool) signalLocked() {
	close(p.freed)
	p.freed = make(chan struct{})
}

func (p *pool) expire(l *link) {
	p.mu.Lock()
	expired := l.users == 0 && time.Since(l.since) >= l.h.opts.IdleTimeout && p.removeLocked(l)
	p.mu.Unlock()
	if expired {
		l.c.Close(connstate.ClosedIdle)
	}
}

// evict closes the connection that has been unused for longest, to make room for another
// one in the registry. It reports whether there is one.
func (p *pool) evict() bool {
	p.mu.Lock()
	var oldest *link
	for _, g := range p.groups {
		for _, l := range g.links {
			if l.users == 0 && (oldest == nil || l.since.Before(oldest.since)) {
				oldest = l
			}
		}
	}
	if oldest != nil {
		p.removeLocked(oldest)
	}
	p.mu.Unlock()
	return oldest != nil && oldest.c.Close(connstate.ClosedIdle)
}

func (p *pool) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeLocked(l)
}

// removeLocked reports whether the connection was in the pool.
func (p *pool) removeLocked(l *link) bool {
	i := slices.Index(l.group.links, l)
	if i < 0 {
		return false
	}
	if l.idle != nil {
		l.idle.Stop()
	}
	l.group.links = slices.Delete(l.group.links, i, i+1)
	if len(l.group.links) == 0 {
		delete(p.groups, l.key)
	}
	p.signalLocked()
	return true
}

// connect returns an initialized connection for a request, which the caller must release,
// or why there is none.
func (h *Handler) connect(a *reply, q *request, exclusive bool) (*link, *httpcheck.Refusal) {
	client := h.checks.Client(a.r, q.principal, connstate.TransportStreamable)
	client.Quiet, client.Dialect, client.Context = true, connstate.EventMessage, q.passed
	var l *link
	// What is passed on may differ from one request to the next, and nothing may tell a client
	// behind a proxy from others.
	fresh := q.passed != nil && !h.opts.SamePeer || q.principal == "" && client.Proxied
	if fresh {
		l = newLink("", &group{})
		l.users, l.retired = 1, true // it is not in the pool
	} else {
		var err error
		l, fresh, err = h.pool.take(a.r.Context(), keyOf(client, q), exclusive)
		switch {
		case err != nil && a.over():
			return nil, gone
		case err != nil:
			return nil, httpcheck.RefusedWith(http.StatusServiceUnavailable, metrics.PostBusy,
				jsonrpc.ReasonError(err.Error(), "server_busy", true))
		}
	}
	if fresh {
		l.open(h, client, q)
	}
	if why := l.awaitReady(a, q); why != nil {
		h.pool.release(l, exclusive)
		return nil, why
	}
	return l, nil
}
