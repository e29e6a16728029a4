package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
)

const (
	// freshFor is how long a server that has answered a ping is believed to live.
	freshFor = 2 * time.Second
	// aliveTimeout bounds the answer to a ping of a server that has answered one.
	aliveTimeout = time.Second
	// bootTimeout bounds the answer to the first one. A server that is silent that
	// long does not answer pings before initialize, and is kept all the same.
	bootTimeout = 10 * time.Second
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
	g    *Gateway
	size int

	mu      sync.Mutex       // guards what follows
	idle    []*session       // the last one is taken first
	opening int              // goroutines that start one, or prove it alive
	backoff *backoff.Backoff // since a session last proved itself; nil: nothing failed
	pause   *time.Timer      // until the next start; nil: none is needed
	mute    bool             // a server of it did not answer pings
	closed  bool
}

// take gives a server that is alive, or nil when there is none, or one that hangs.
func (p *pool) take(ctx context.Context) *session {
	if p == nil {
		return nil
	}
	for s := p.pop(); s != nil; s = p.pop() {
		if s.alive(ctx) {
			p.g.metrics.PoolTake(true)
			return s
		}
		if ctx.Err() != nil { // the connection left while the server was asked
			if !p.adopt(s) {
				p.g.endSession(s, errNotNeeded)
			}
			return nil
		}
		hung := s.Err() == nil
		p.g.metrics.PoolDiscarded()
		p.g.log.Warn("warm server discarded", "age", time.Since(s.since))
		p.g.endSession(s, errNotAlive)
		if hung { // so may be the others: to start one is quicker than to try them all
			break
		}
	}
	p.g.metrics.PoolTake(false)
	return nil
}

func (p *pool) pop() *session {
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
	if s.proven() {
		p.backoff = nil
	}
	p.g.metrics.PoolIdle(-1)
	return s
}

// alive reports whether the server still answers.
func (s *session) alive(ctx context.Context) bool {
	if s.Err() != nil {
		return false
	}
	if s.mute || time.Since(s.seen) < freshFor {
		return true
	}
	return s.ping(ctx, aliveTimeout) == nil
}

// prove waits until the server has answered a ping, so has booted, or at most for
// wait: then it does not answer pings. It fails when the session ends, or with ctx.
func (s *session) prove(ctx context.Context, wait time.Duration) error {
	err := s.ping(ctx, wait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		s.mute = true
		return s.Err()
	}
	return err
}

// ping asks the server for a sign of life. Any answer is one, also an error.
func (s *session) ping(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if _, err := s.Call(ctx, mcp.MethodPing, nil); err != nil {
		return err
	}
	s.seen = time.Now()
	return nil
}

// put takes a session that is not initialized, and reports whether it did.
func (p *pool) put(s *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.size || !s.own(func(error) { p.lost(s) }) {
		return false
	}
	p.idle = append(p.idle, s)
	p.g.metrics.PoolIdle(1)
	return true
}

// adopt takes a session from a connection that has left before initialize went
// out, if the pool needs it, and reports whether it did. One that has not booted
// yet counts as a start of the pool's own.
func (p *pool) adopt(s *session) bool {
	switch {
	case p == nil:
		return false
	case s.mute || !s.seen.IsZero():
		return p.put(s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle)+p.opening >= p.size || !s.own(nil) {
		return false
	}
	p.opening++
	p.g.sessions.Go(func() { p.opened(s, s.prove(p.g.life, bootTimeout)) }) // ends with the ping
	return true
}

// lost takes the end of a session in the pool. One that ends soon after its
// start counts as a start that failed.
func (p *pool) lost(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.idle, s)
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

// refillLocked starts the missing servers, at most as many at a time as may run:
// more would delay the connections that wait for a start.
func (p *pool) refillLocked() {
	for !p.closed && p.pause == nil && p.opening < cap(p.g.starts) && len(p.idle)+p.opening < p.size {
		p.opening++
		p.g.sessions.Go(p.open) // ends with the start
	}
}

// open starts one server for the pool.
func (p *pool) open() {
	began := time.Now()
	s, err := p.start()
	switch {
	case err == nil:
		p.g.metrics.PoolStart(true)
		p.g.log.Info("warm server started", "duration", time.Since(began), "answersPing", !s.mute)
	case !abandoned(err):
		p.g.metrics.PoolStart(false)
		p.g.health.started(err)
		level, attrs := p.g.startLog.failed(err, false, "duration", time.Since(began))
		p.g.log.Log(context.Background(), level, "warm server start failed", attrs...)
	}
	p.opened(s, err)
}

// start starts a server, in its turn, and waits until it has booted.
func (p *pool) start() (*session, error) {
	turn := &turn{g: p.g}
	defer turn.end()
	s, left, err := p.g.startOne(p.g.life, turn)
	if err != nil {
		return nil, err
	}
	if p.isMute() { // nothing tells when the next one has booted: it must not keep others from starting
		turn.end()
	}
	if err := s.prove(p.g.life, min(left, bootTimeout)); err != nil {
		p.g.endSession(s, err)
		return nil, &handshake.Failure{
			Phase: handshake.PhaseCreation, Reason: reasonOf(err), Details: "the server ended before it was needed", Err: err,
		}
	}
	return s, nil
}

func (p *pool) isMute() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mute
}

// opened takes what open or adopt came to.
func (p *pool) opened(s *session, err error) {
	if s != nil && (err != nil || !p.put(s)) {
		if err == nil {
			err = s.Err() // it died at the last moment, or the pool is full
		}
		p.g.endSession(s, errNotNeeded)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opening--
	if err == nil {
		p.mute = s.mute
	}
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
		p.backoff = newBackoff()
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
	for _, s := range p.idle {
		p.g.endSession(s, errNotNeeded)
	}
	p.g.metrics.PoolIdle(-len(p.idle))
	p.idle = nil
}
