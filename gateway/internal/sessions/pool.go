package sessions

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
)

var (
	// errNotAlive is the reason of a warm server that did not answer a ping.
	errNotAlive = errors.New("the server in the pool did not answer a ping")
	// errNotNeeded is the reason of a session that nobody needs any more.
	errNotNeeded = errors.New("the session is not needed")
)

// pool keeps servers that are started ahead of the connections that will take
// them, and proved alive by a ping, which MCP allows before initialize (MCP
// 2025-11-25, basic/lifecycle). None is initialized: the handshake is the
// connection's own, so a server of the pool fits any client. Each missing one is
// started by a goroutine of its own, which ends with that; after a start that
// failed the next one waits.
type pool struct {
	supplier *Supplier
	size     int

	mu      sync.Mutex       // guards what follows
	idle    []*Session       // the last one is taken first
	opening int              // goroutines that start one, or prove it alive
	backoff *backoff.Backoff // since a session last proved itself; nil: nothing failed
	pause   *time.Timer      // until the next start; nil: none is needed
	mute    bool             // a server of it did not answer pings
	closed  bool
}

// take returns a server that is alive; nil when there is none, or when it finds one
// that hangs.
func (p *pool) take(ctx context.Context) *Session {
	for s := p.pop(); s != nil; s = p.pop() {
		if s.alive(ctx) {
			p.supplier.metrics.PoolTake(true)
			return s
		}
		if ctx.Err() != nil { // the connection left while the server was asked
			if !p.adopt(s) {
				s.End(errNotNeeded)
			}
			return nil
		}
		hung := s.Err() == nil
		p.supplier.metrics.PoolDiscarded()
		p.supplier.log.Warn("warm server discarded", "age", s.Age())
		s.End(errNotAlive)
		if hung { // so may be the others: to start one is quicker than to try them all
			break
		}
	}
	p.supplier.metrics.PoolTake(false)
	return nil
}

func (p *pool) pop() *Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.refillLocked()
	if len(p.idle) == 0 {
		return nil
	}
	last := len(p.idle) - 1
	s := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	if s.Proven() {
		p.backoff = nil
	}
	p.supplier.metrics.PoolIdle(-1)
	return s
}

// put adds a session that is not initialized, and reports whether there was room.
func (p *pool) put(s *Session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.size || !s.Own(func(error) { p.lost(s) }) {
		return false
	}
	p.idle = append(p.idle, s)
	p.supplier.metrics.PoolIdle(1)
	return true
}

// GiveBack returns a session to the pool that has heard nothing of its client, and
// reports whether the pool needs it. If not, the caller still owns it.
func (s *Supplier) GiveBack(session *Session) bool {
	return s.pool != nil && s.pool.adopt(session)
}

// adopt takes a session that is not initialized, if the pool needs it, and reports
// whether it did. One that has not booted yet counts as a start of the pool's own.
func (p *pool) adopt(s *Session) bool {
	if s.mute || !s.seen.IsZero() {
		return p.put(s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle)+p.opening >= p.size || !s.Own(nil) {
		return false
	}
	p.opening++
	p.supplier.Go(func() { p.opened(s, s.prove(p.supplier.life, bootTimeout)) }) // ends with the ping
	return true
}

// lost handles the end of a session in the pool. One that ends soon after its
// start counts as a start that failed.
func (p *pool) lost(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.idle, s)
	if i < 0 {
		return // it is being taken, or was
	}
	p.idle = slices.Delete(p.idle, i, i+1)
	p.supplier.metrics.PoolIdle(-1)
	p.supplier.metrics.PoolDiscarded()
	s.End(errNotNeeded)
	if s.Proven() {
		p.backoff = nil
	} else {
		p.delayLocked()
	}
	p.refillLocked()
}

// refill starts what is missing.
func (p *pool) refill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refillLocked()
}

// refillLocked starts the missing servers, at most as many at a time as may run:
// more would delay the connections that wait for a start.
func (p *pool) refillLocked() {
	for !p.closed && p.pause == nil && p.opening < cap(p.supplier.turns) && len(p.idle)+p.opening < p.size {
		p.opening++
		p.supplier.Go(p.open) // ends with the start
	}
}

// open starts one server for the pool.
func (p *pool) open() {
	began := time.Now()
	s, err := p.start()
	switch {
	case err == nil:
		p.supplier.metrics.PoolStart(true)
		p.supplier.log.Info("warm server started", "duration", time.Since(began), "answersPing", !s.mute)
	case !abandoned(err):
		p.supplier.metrics.PoolStart(false)
		level, attrs := p.supplier.NoteFailure(err, false, "duration", time.Since(began))
		p.supplier.log.Log(context.Background(), level, "warm server start failed", attrs...)
	}
	p.opened(s, err)
}

// start starts a server, in its turn, and waits until it has booted.
func (p *pool) start() (*Session, error) {
	a := p.supplier.NewAttempt()
	defer a.End()
	s, err := a.start(p.supplier.life)
	if err != nil {
		return nil, err
	}
	if p.isMute() { // nothing tells when the next one has booted: it must not keep others from starting
		a.End()
	}
	if err := s.prove(p.supplier.life, min(a.left, bootTimeout)); err != nil {
		s.End(err)
		return nil, creationFailure(reasonOf(err), "the server ended before it was needed", err)
	}
	return s, nil
}

func (p *pool) isMute() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mute
}

// opened handles the result of open or adopt.
func (p *pool) opened(s *Session, err error) {
	if s != nil && (err != nil || !p.put(s)) {
		if err == nil {
			err = s.Err() // it died at the last moment, or the pool is full
		}
		s.End(errNotNeeded)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opening--
	if err == nil {
		p.mute = s.mute
	}
	if err != nil {
		p.delayLocked()
	}
	p.refillLocked()
}

// delayLocked delays the next start.
func (p *pool) delayLocked() {
	if p.closed || p.pause != nil {
		return
	}
	if p.backoff == nil {
		p.backoff = NewBackoff()
	}
	p.pause = time.AfterFunc(p.backoff.Next(), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pause = nil
		p.refillLocked()
	})
}

// close ends the sessions in the pool; it takes no more.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.pause != nil {
		p.pause.Stop()
	}
	for _, s := range p.idle {
		s.End(errNotNeeded)
	}
	p.supplier.metrics.PoolIdle(-len(p.idle))
	p.idle = nil
}
