package handshake

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
)

// pool keeps warm servers. They have been sent nothing: the connection runs its own
// handshake, so a warm server fits any client, and one that hangs is found by that
// handshake, like any other. One goroutine for each server keeps it, and starts the next
// one when that is taken or ends.
//
// With SupplierOptions.WarmFollowsUse nothing runs for nobody: the pool is empty while the server is
// known and was not used for ProcessIdle. It is always empty where connections share a session.
type pool struct {
	source *source
	warm   chan *Session // unbuffered: from a keeper to take

	lastUse atomic.Int64 // when the server was last used, in Unix nanoseconds; 0: never
	empty   atomic.Bool  // use fills the pool

	mu       sync.Mutex           // guards what follows
	keepers  []context.CancelFunc // each ends a keeper
	until    time.Time            // no server is started ahead before; zero: no check of the server has failed
	watching bool                 // emptyUnused runs
}

// noteUse notes that the server is used, at a time in Unix nanoseconds, which may fill the pool.
func (p *pool) noteUse(at int64) {
	p.lastUse.Store(at)
	if p.empty.Load() {
		p.source.Go(p.resize)
	}
}

// isWanted reports whether warm servers are wanted now. It also notes a use while the server is unknown, so that
// the warm server stays for the next client.
func (p *pool) isWanted() bool {
	opts := p.source.Options()
	if !opts.WarmFollowsUse {
		return true
	}
	if !p.source.IsKnown() {
		p.lastUse.Store(time.Now().UnixNano())
	}
	used := p.lastUse.Load()
	return used > 0 && (opts.ProcessIdle == 0 || time.Since(time.Unix(0, used)) < opts.ProcessIdle)
}

// resize keeps as many servers as SupplierOptions.Warm says; none during a rest, or while none are wanted.
func (p *pool) resize() {
	p.empty.Store(true)    // a use that comes after isWanted has looked calls resize again
	wanted := p.isWanted() // it may read a file
	p.mu.Lock()
	defer p.mu.Unlock()
	opts := p.source.Options()
	warm := opts.Warm
	if !wanted || time.Now().Before(p.until) {
		warm = 0
	}
	p.empty.Store(opts.Warm > 0 && !wanted)
	if wanted && opts.WarmFollowsUse && opts.ProcessIdle > 0 && !p.watching {
		p.watching = true
		p.source.Go(p.emptyUnused)
	}
	for len(p.keepers) < warm {
		life, end := context.WithCancel(p.source.life)
		p.keepers = append(p.keepers, end)
		p.source.Go(func() { p.keep(life) }) // ends with the supplier
	}
	for ; len(p.keepers) > warm; p.keepers = p.keepers[:len(p.keepers)-1] {
		p.keepers[len(p.keepers)-1]()
	}
}

// emptyUnused empties the pool once nobody has used the server for ProcessIdle. It ends then, with the supplier, or where the pool
// does not follow use any more, as after a reload.
func (p *pool) emptyUnused() {
	for {
		opts := p.source.Options()
		if !opts.WarmFollowsUse || opts.ProcessIdle == 0 || !p.isWanted() {
			break
		}
		unused := time.Unix(0, p.lastUse.Load()).Add(opts.ProcessIdle)
		if backoff.Wait(p.source.life, time.Until(unused)) != nil {
			return
		}
	}
	p.mu.Lock()
	p.watching = false
	p.mu.Unlock()
	p.resize()
}

// rest ends the warm servers and those that start, after a check of the server that has failed, and starts none for d.
func (p *pool) rest(d time.Duration) {
	p.mu.Lock()
	p.until = time.Now().Add(d)
	p.mu.Unlock()
	p.resize()
	p.source.Go(func() { // ends after d, or with the supplier
		if backoff.Wait(p.source.life, d) == nil && p.source.started.Load() {
			p.resize()
		}
	})
}

// take returns a warm server, or nil if there is none.
func (p *pool) take() *Session {
	for {
		select {
		case s := <-p.warm:
			if s.isOver() { // in this moment
				continue
			}
			p.source.metrics.PoolTake(true)
			return s
		default:
			p.source.metrics.PoolTake(false)
			return nil
		}
	}
}

// keep keeps one warm server, until life ends. It pauses after a start that failed, and after
// a server that ended before anybody took it: some end when they have been idle for a while.
func (p *pool) keep(life context.Context) {
	pauses := NewPauses()
	for life.Err() == nil {
		s, err := p.start(life)
		if err == nil && p.offer(life, s) {
			pauses = NewPauses()
			continue
		}
		switch {
		case err != nil:
		case !s.Proven():
			p.noteFailure(EndedSoon(s.Why()), s.Age())
		case s.Age() > longIdle:
			pauses = NewPauses()
		}
		pause := pauses.Next()
		if p.isHopeless() {
			pause = maxPause
		}
		_ = backoff.Wait(life, pause)
	}
}

// isHopeless reports whether the server has failed its check and has never answered: a moment later it will hardly
// start.
func (p *pool) isHopeless() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.until.IsZero() && p.source.server.Load() == nil
}

// longIdle is how long a warm server must have lived for its end to say nothing of the next one.
const longIdle = 4 * maxPause

// offer offers a server to take. It reports false if the server has ended before anybody
// took it.
func (p *pool) offer(life context.Context, s *Session) (done bool) {
	m := p.source.metrics
	m.PoolIdle(1)
	defer m.PoolIdle(-1)
	select {
	case p.warm <- s:
	case <-life.Done():
		s.Close(errNotNeeded)
	case <-s.Over():
		return false
	}
	return true
}

// start starts a server for the pool, and reports the result.
func (p *pool) start(life context.Context) (*Session, error) {
	t := turn{s: p.source}
	defer t.end()
	began := time.Now()
	s, _, err := p.source.dial(life, &t)
	switch {
	case err == nil:
		p.source.log.Info("warm server started", "duration", time.Since(began))
	case !abandoned(err):
		p.noteFailure(err, time.Since(began))
	}
	return s, err
}

// noteFailure reports a server that did not start, or ended before anybody took it.
func (p *pool) noteFailure(err error, took time.Duration) {
	p.source.NoteFailure(err)
	p.source.limited.Warn("warm server start failed", "duration", took, "err", err)
}

// abandoned reports whether a start ended because its caller cancelled it.
func abandoned(err error) bool { return errors.Is(err, context.Canceled) }
