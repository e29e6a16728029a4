package sessions

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
)

// errNotAlive is the close reason of a warm server that did not answer a ping.
var errNotAlive = errors.New("the server in the pool did not answer a ping")

// pool keeps warm servers. Each has answered a ping, which MCP allows before
// initialize (MCP 2025-11-25, basic/lifecycle), or is mute. None is initialized: the
// connection runs its own handshake, so a warm server fits any client. One goroutine
// for each server keeps it, and starts the next one when that is taken or ends.
type pool struct {
	supplier *Supplier
	warm     chan *Session // unbuffered: from a keeper to take

	mu      sync.Mutex           // guards keepers
	keepers []context.CancelFunc // each ends a keeper
}

// resize keeps as many servers as Options.Warm says.
func (p *pool) resize() {
	p.mu.Lock()
	defer p.mu.Unlock()
	warm := p.supplier.opts().Warm
	for len(p.keepers) < warm {
		life, end := context.WithCancel(p.supplier.life)
		p.keepers = append(p.keepers, end)
		p.supplier.Go(func() { p.keep(life) }) // ends with the supplier
	}
	for ; len(p.keepers) > warm; p.keepers = p.keepers[:len(p.keepers)-1] {
		p.keepers[len(p.keepers)-1]()
	}
}

// take returns a server that is alive. It returns nil if there is none, or after it
// found a server that hangs.
func (p *pool) take(ctx context.Context) *Session {
	for {
		var s *Session
		select {
		case s = <-p.warm:
		default:
			p.supplier.metrics.PoolTake(false)
			return nil
		}
		if s.alive(ctx) {
			p.supplier.metrics.PoolTake(true)
			return s
		}
		hung := !s.isOver()
		s.Close(errNotAlive)
		if ctx.Err() != nil { // the connection left during the ping
			return nil
		}
		p.supplier.log.Warn("warm server discarded", "age", s.Age())
		if hung { // the others may hang too: a start is quicker than a ping of each
			p.supplier.metrics.PoolTake(false)
			return nil
		}
	}
}

// keep keeps one warm server, until life ends. After a start that failed, it pauses.
func (p *pool) keep(life context.Context) {
	pauses := NewBackoff()
	for life.Err() == nil {
		s, err := p.start(life)
		if err == nil {
			err = p.offer(life, s)
		}
		if err != nil {
			_ = backoff.Wait(life, pauses.Next())
			continue
		}
		pauses = NewBackoff()
	}
}

// offer offers a server to take. It fails if the server ends before it has proved
// itself.
func (p *pool) offer(life context.Context, s *Session) error {
	m := p.supplier.metrics
	m.PoolIdle(1)
	defer m.PoolIdle(-1)
	select {
	case p.warm <- s:
	case <-life.Done():
		s.Close(errNotNeeded)
	case <-s.Over():
		if !s.Proven() {
			return s.Why()
		}
	}
	return nil
}

// start starts a server for the pool, and reports the result.
func (p *pool) start(life context.Context) (*Session, error) {
	began := time.Now()
	s, err := p.boot(life)
	switch {
	case err == nil:
		p.supplier.log.Info("warm server started", "duration", time.Since(began), "answersPing", !s.isMute())
	case !abandoned(err):
		p.supplier.NoteFailure(err)
		p.supplier.limited.Warn("warm server start failed", "duration", time.Since(began), "err", err)
	}
	return s, err
}

// boot waits for a turn, starts a server and waits until it has booted.
func (p *pool) boot(life context.Context) (*Session, error) {
	t := turn{s: p.supplier}
	defer t.end()
	s, left, err := p.supplier.dial(life, &t)
	if err != nil {
		return nil, err
	}
	if p.supplier.mute.Load() { // no ping shows the end of the boot: do not hold the turn for so long
		t.end()
	}
	if err := s.prove(life, min(left, bootTimeout)); err != nil {
		s.Close(err)
		return nil, creationFailure(reasonOf(err), "the server ended before it was needed", err)
	}
	p.supplier.mute.Store(s.isMute())
	return s, nil
}

// abandoned reports whether a start ended because its caller cancelled it.
func abandoned(err error) bool { return errors.Is(err, context.Canceled) }
