package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
)

const (
	// freshFor is how long a warm session that was seen alive is believed to be.
	freshFor = 2 * time.Second
	// aliveTimeout bounds the answer to the ping that shows it.
	aliveTimeout = time.Second
)

var (
	// errNotAlive is the reason of a warm session that did not answer a ping.
	errNotAlive = errors.New("the session in the pool did not answer a ping")
	// errNotNeeded is the reason of a session that nobody needs any more.
	errNotNeeded = errors.New("the session is not needed")
)

// pool keeps sessions that are initialized ahead of the connections that will
// take them: the synthetic params are the same for all, so any session fits any
// connection. Each missing session is started by a goroutine of its own, which
// ends with it; after a start that failed the next one waits.
type pool struct {
	g    *Gateway
	size int

	mu      sync.Mutex         // guards what follows
	idle    []warm             // the last one is taken first
	opening int                // starts that run
	backoff *handshake.Backoff // since a session last proved itself; nil: nothing failed
	pause   *time.Timer        // until the next start; nil: none is needed
	closed  bool
}

// warm is a session in the pool.
type warm struct {
	*session
	seen time.Time // when it was last known to answer
}

// take gives a session that is alive, or nil when there is none, or one that hangs.
func (p *pool) take(ctx context.Context) *session {
	if p == nil {
		return nil
	}
	for w, ok := p.pop(); ok; w, ok = p.pop() {
		if w.alive(ctx) {
			p.g.metrics.PoolTake(true)
			return w.session
		}
		hung := w.Err() == nil
		p.g.metrics.PoolDiscarded()
		p.g.log.Warn("warm session discarded", "age", time.Since(w.since))
		p.g.endSession(w.session, errNotAlive)
		if hung { // so may be the others: to start one is quicker than to try them all
			break
		}
	}
	p.g.metrics.PoolTake(false)
	return nil
}

func (p *pool) pop() (warm, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.refillLocked()
	if len(p.idle) == 0 {
		return warm{}, false
	}
	last := len(p.idle) - 1
	w := p.idle[last]
	p.idle[last] = warm{}
	p.idle = p.idle[:last]
	if w.proven() {
		p.backoff = nil
	}
	p.g.metrics.PoolIdle(-1)
	return w, true
}

// alive reports whether the server answers on the session. Any answer shows it.
func (w warm) alive(ctx context.Context) bool {
	if w.Err() != nil {
		return false
	}
	if time.Since(w.seen) < freshFor {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	_, err := w.Call(ctx, "ping", nil)
	return err == nil
}

// put takes a session that no client has used, and reports whether it did.
func (p *pool) put(s *session) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.size || !s.own(func(error) { p.lost(s) }) {
		return false
	}
	p.idle = append(p.idle, warm{s, time.Now()})
	p.g.metrics.PoolIdle(1)
	return true
}

// lost takes the end of a session in the pool. One that ends soon after its
// start counts as a start that failed.
func (p *pool) lost(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.idle, func(w warm) bool { return w.session == s })
	if i < 0 {
		return // it is being taken, or was
	}
	p.idle = slices.Delete(p.idle, i, i+1)
	p.g.metrics.PoolIdle(-1)
	p.g.metrics.PoolDiscarded()
	p.g.endSession(s, errNotNeeded)
	if s.proven() {
		p.backoff = nil
	} else {
		p.waitLocked()
	}
	p.refillLocked()
}

// refill starts what is missing.
func (p *pool) refill() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refillLocked()
}

// refillLocked starts as many as may run at a time: more would stand in front of
// the connections that wait for a start.
func (p *pool) refillLocked() {
	for !p.closed && p.pause == nil && p.opening < cap(p.g.starts) && len(p.idle)+p.opening < p.size {
		p.opening++
		p.g.sessions.Go(p.open) // ends with the start
	}
}

// open starts one session for the pool.
func (p *pool) open() {
	began := time.Now()
	s, err := p.g.open(p.g.life, p.g.params, nil)
	if !abandoned(err) {
		p.g.health.started(err)
		p.g.metrics.PoolStart(err == nil)
	}
	switch {
	case err == nil:
		p.g.log.Info("warm session started", "duration", time.Since(began))
	case !abandoned(err):
		p.g.log.Warn("warm session start failed", "duration", time.Since(began), "err", err)
	}
	if err == nil && !p.put(s) {
		p.g.endSession(s, errNotNeeded)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opening--
	if err != nil {
		p.waitLocked()
	}
	p.refillLocked()
}

// waitLocked has the next start wait.
func (p *pool) waitLocked() {
	if p.closed || p.pause != nil {
		return
	}
	if p.backoff == nil {
		p.backoff = handshake.NewBackoff()
	}
	p.pause = time.AfterFunc(p.backoff.Next(), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pause = nil
		p.refillLocked()
	})
}

// close ends the sessions in the pool; none is taken any more.
func (p *pool) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.pause != nil {
		p.pause.Stop()
	}
	for _, w := range p.idle {
		p.g.endSession(w.session, errNotNeeded)
	}
	p.g.metrics.PoolIdle(-len(p.idle))
	p.idle = nil
}
