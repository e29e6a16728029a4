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
	// errNotAlive is the close reason of a warm server that did not answer a ping.
	errNotAlive = errors.New("the server in the pool did not answer a ping")
	// errNotNeeded is the close reason of a session that the supplier does not need
	// any more.
	errNotNeeded = errors.New("the session is not needed")
)

// pool keeps warm servers. Each has answered a ping, which MCP allows before
// initialize (MCP 2025-11-25, basic/lifecycle), or is mute. None is initialized: the
// connection runs its own handshake, so a warm server fits any client. One goroutine
// for each missing server starts it and ends with the start. After a failed start the
// pool pauses.
type pool struct {
	supplier *Supplier
	size     int

	mu       sync.Mutex       // guards what follows
	idle     []*Session       // pop takes the last one
	starting int              // goroutines that start a server, or wait for its ping
	backoff  *backoff.Backoff // nil: no start has failed since a session proved itself
	pause    *time.Timer      // runs until the next start is allowed; nil: it is
	mute     bool             // the last server that started did not answer pings
	closed   bool
}

// take returns a server that is alive. It returns nil if there is none, or after it
// found a server that hangs.
func (p *pool) take(ctx context.Context) *Session {
	for s := p.pop(); s != nil; s = p.pop() {
		if s.alive(ctx) {
			p.supplier.metrics.PoolTake(true)
			return s
		}
		if ctx.Err() != nil { // the connection left during the ping
			if !p.adopt(s) {
				s.End(errNotNeeded)
			}
			return nil
		}
		hung := s.Err() == nil
		p.supplier.log.Warn("warm server discarded", "age", s.Age())
		s.End(errNotAlive)
		if hung { // the others may hang too: a start is quicker than a ping of each
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

// put adds a session that is not initialized. It reports false if the pool is full or
// closed, or the session is over.
func (p *pool) put(s *Session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.size || !s.Own(func(error) { p.handleEnd(s) }) {
		return false
	}
	p.idle = append(p.idle, s)
	p.supplier.metrics.PoolIdle(1)
	return true
}

// GiveBack gives a session that has got no message from its client to the pool. It
// reports whether the pool took it. If not, the caller still owns it.
func (s *Supplier) GiveBack(session *Session) bool {
	return s.pool != nil && s.pool.adopt(session)
}

// adopt adds a session that is not initialized, if the pool needs it, and reports
// whether it did. A session whose server has not booted yet counts as a start of the
// pool.
func (p *pool) adopt(s *Session) bool {
	if s.mute || !s.seen.IsZero() {
		return p.put(s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle)+p.starting >= p.size || !s.Own(nil) {
		return false
	}
	p.starting++
	p.supplier.Go(func() { p.finishStart(s, s.prove(p.supplier.life, bootTimeout)) }) // ends with the ping or the supplier
	return true
}

// handleEnd removes a session that has ended from the pool. If the session had not
// proved itself, this counts as a failed start.
func (p *pool) handleEnd(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.idle, s)
	if i < 0 {
		return // pop has taken it
	}
	p.idle = slices.Delete(p.idle, i, i+1)
	p.supplier.metrics.PoolIdle(-1)
	s.End(errNotNeeded)
	if s.Proven() {
		p.backoff = nil
	} else {
		p.delayLocked()
	}
	p.refillLocked()
}

// refill starts the missing servers.
func (p *pool) refill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refillLocked()
}

// refillLocked starts the missing servers, at most StartConcurrency at a time: more
// would delay the starts of connections.
func (p *pool) refillLocked() {
	for !p.closed && p.pause == nil && p.starting < p.supplier.opts.StartConcurrency && len(p.idle)+p.starting < p.size {
		p.starting++
		p.supplier.Go(p.open) // ends with the start
	}
}

// open starts one server for the pool.
func (p *pool) open() {
	began := time.Now()
	s, err := p.start()
	switch {
	case err == nil:
		p.supplier.log.Info("warm server started", "duration", time.Since(began), "answersPing", !s.mute)
	case !abandoned(err):
		level, attrs := p.supplier.NoteFailure(err, false, "duration", time.Since(began))
		p.supplier.log.Log(context.Background(), level, "warm server start failed", attrs...)
	}
	p.finishStart(s, err)
}

// start waits for a turn, starts a server and waits until it has booted.
func (p *pool) start() (*Session, error) {
	a := p.supplier.NewAttempt("")
	defer a.End()
	s, err := a.start(p.supplier.life)
	if err != nil {
		return nil, err
	}
	if p.isMute() { // no ping shows the end of the boot: do not hold the turn for so long
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

// finishStart ends an opening of open or adopt: it puts s into the pool, or ends
// it, and delays the next start after an error.
func (p *pool) finishStart(s *Session, err error) {
	if s != nil && (err != nil || !p.put(s)) {
		if err == nil {
			err = s.Err() // it has just ended; nil: the pool is full
		}
		s.End(errNotNeeded)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting--
	if err == nil {
		p.mute = s.mute
	}
	if err != nil {
		p.delayLocked()
	}
	p.refillLocked()
}

// delayLocked starts the pause before the next start.
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

// close ends the sessions in the pool, and makes put and adopt fail.
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
