package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// shared are the sessions that all connections share: places, each with one
// session or none. A session is started when the first connection needs it, by
// one start that every waiting connection shares, and again when it is lost.
type shared struct {
	g      *Gateway
	mu     sync.Mutex // guards what follows
	places []*place
	closed bool
}

// place is where one shared session is.
type place struct {
	of *shared

	// Guarded by shared.mu.
	session *session       // nil: there is none
	links   map[*link]bool // the connections on the session
	joining int            // connections that are about to be
	opening *opening       // the start that runs; nil: none does
	lostOne bool           // the next session replaces one that was lost
	backoff *backoff.Backoff
	notYet  time.Time // no start before; after one that failed
}

// opening is one start, which every connection that needs the session waits for.
type opening struct {
	done    chan struct{} // closed when it is over
	session *session      // set before done is closed, as err is
	err     error
}

func newShared(g *Gateway, size int) *shared {
	s := &shared{g: g}
	for range size {
		s.places = append(s.places, &place{of: s, links: make(map[*link]bool)})
	}
	return s
}

// start starts all sessions ahead of the connections that need them.
func (s *shared) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.places {
		if p.session == nil {
			p.openLocked()
		}
	}
}

// join gives a connection its place on the session that fewest share, once that
// is there. The error is a *handshake.Failure, or that of ctx.
func (s *shared) join(ctx context.Context, b *bridge) (*link, error) {
	s.mu.Lock()
	p := s.leastLocked()
	p.joining++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		p.joining--
		s.mu.Unlock()
	}()
	for {
		session, err := p.get(ctx)
		if err != nil {
			return nil, err
		}
		if l := p.attach(b, session); l != nil {
			return l, nil
		}
	}
}

func (s *shared) leastLocked() *place {
	least := s.places[0]
	for _, p := range s.places[1:] {
		if len(p.links)+p.joining < len(least.links)+least.joining {
			least = p
		}
	}
	return least
}

// get waits for the session.
func (p *place) get(ctx context.Context) (*session, error) {
	p.of.mu.Lock()
	if p.session != nil {
		defer p.of.mu.Unlock()
		return p.session, nil
	}
	o := p.openLocked()
	p.of.mu.Unlock()
	select {
	case <-o.done:
		return o.session, o.err
	case <-ctx.Done():
		return nil, &handshake.Failure{Phase: handshake.PhaseCreation, Reason: reasonOf(ctx.Err()), Details: "the start was not waited for", Err: ctx.Err()}
	}
}

// attach puts a connection on the session, unless that is lost already.
func (p *place) attach(b *bridge, s *session) *link {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.session != s {
		return nil
	}
	l := newLink(b, s)
	p.links[l] = true
	l.place = p
	return l
}

// openLocked starts a session, unless one is being started.
func (p *place) openLocked() *opening {
	if p.opening == nil {
		o := &opening{done: make(chan struct{})}
		p.opening = o
		wait := time.Until(p.notYet)
		p.of.g.sessions.Go(func() { p.open(o, wait) }) // ends with the start, or with the gateway
	}
	return p.opening
}

func (p *place) open(o *opening, wait time.Duration) {
	g := p.of.g
	began := time.Now().Add(max(0, wait))
	o.session, o.err = p.opened(wait)
	g.countShared(o.session, o.err, time.Since(began))
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.opening = nil
	defer close(o.done)
	if o.err != nil {
		p.waitLocked()
		return
	}
	s := o.session
	if p.of.closed {
		g.endSession(s, errNotNeeded)
		return
	}
	p.session = s
	if p.lostOne {
		p.lostOne = false
		g.metrics.SessionRestarted()
	}
	if !s.own(func(err error) { p.lost(s, err) }) {
		p.session = nil // a connection that waits starts another
		p.waitLocked()
	}
}

func (p *place) opened(wait time.Duration) (*session, error) {
	g := p.of.g
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-g.life.Done():
		}
	}
	g.metrics.HandshakeAttempt()
	limit := g.opts.InitializationTimeout
	defer time.AfterFunc(limit, func() {
		g.metrics.HandshakeDone(metrics.HandshakeError, metrics.PhaseRequestProcessing, metrics.ReasonTimeout, limit, "")
	}).Stop()
	return g.open(g.life)
}

func (p *place) waitLocked() {
	if p.backoff == nil {
		p.backoff = newBackoff()
	}
	p.notYet = time.Now().Add(p.backoff.Next())
}

// lost handles the loss of the session for all connections on it. It reports
// whether s was the current session; a second call reports false.
func (p *place) lost(s *session, err error) bool {
	p.of.mu.Lock()
	if p.session != s {
		p.of.mu.Unlock()
		return false
	}
	links := p.links
	p.session, p.links, p.lostOne = nil, make(map[*link]bool), true
	if s.proven() {
		p.backoff = nil
	} else {
		p.waitLocked()
		failure := endedSoon(err)
		p.of.g.metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, time.Since(s.since), "")
	}
	p.of.mu.Unlock()
	p.of.g.log.Warn("shared session lost", "connections", len(links), "duration", time.Since(s.since), "err", err)
	for l := range links {
		l.client.bridge.start.lose(l, err)
	}
	return true
}

// leave takes a connection off the session, which goes on.
func (p *place) leave(l *link) {
	p.of.mu.Lock()
	delete(p.links, l)
	p.of.mu.Unlock()
	l.caller.Detach()
}

// close ends the sessions.
func (s *shared) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, p := range s.places {
		if p.session != nil {
			s.g.endSession(p.session, errNotNeeded)
			p.session = nil
		}
	}
}
