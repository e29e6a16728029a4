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

	lastUse atomic.Int64  // when the server was last used, in Unix nanoseconds; 0: never
	state   atomic.Uint32 // a poolState; decideLocked alone moves it

	mu          sync.Mutex           // guards what follows
	keepers     []context.CancelFunc // each ends a keeper
	pausesUntil time.Time            // no server is started ahead before; zero: no check of the server has failed
	stopLook    context.CancelFunc   // ends the wait of lookAgainLocked; nil: none has begun
}

// poolState is what the pool keeps, and what may change that by itself. Beside that, resize decides anew when the
// supplier starts, its options change, or a check fails.
//
//	state        keeps                                                  until
//	poolOff      none: SupplierOptions.Warm is 0, or Start was not called
//	poolFull     as many servers as SupplierOptions.Warm says           the server is known and unused for ProcessIdle
//	poolUnused   none: nobody needs one, see isWanted                   the server is used
//	poolPausing  none: a check of the server has failed                 pausesUntil
type poolState uint32

const (
	poolOff poolState = iota
	poolFull
	poolUnused
	poolPausing
)

// noteUse notes that the server is used, at a time in Unix nanoseconds, which may fill the pool.
func (p *pool) noteUse(at int64) {
	p.lastUse.Store(at)
	if poolState(p.state.Load()) == poolUnused {
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

// resize decides what the pool keeps, keeps that, and looks again when that may change by itself.
func (p *pool) resize() {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.decideLocked()
	if state == poolUnused { // a use resizes from now on, but one may have come since decideLocked has looked
		state = p.decideLocked()
	}
	p.keepLocked(state)
	p.lookAgainLocked(state)
}

// decideLocked moves the pool to the state of now. It may read a file.
func (p *pool) decideLocked() poolState {
	state, wanted := poolFull, p.isWanted()
	switch {
	case p.source.Options().Warm == 0, !p.source.started.Load():
		state = poolOff
	case !wanted:
		state = poolUnused
	case time.Now().Before(p.pausesUntil):
		state = poolPausing
	}
	p.state.Store(uint32(state))
	return state
}

// keepLocked begins and ends keepers until there are as many as a state needs.
func (p *pool) keepLocked(state poolState) {
	servers := 0
	if state == poolFull {
		servers = p.source.Options().Warm
	}
	for len(p.keepers) < servers {
		life, end := context.WithCancel(p.source.life)
		p.keepers = append(p.keepers, end)
		p.source.Go(func() { p.keepWarm(life) }) // ends with the supplier
	}
	for ; len(p.keepers) > servers; p.keepers = p.keepers[:len(p.keepers)-1] {
		p.keepers[len(p.keepers)-1]()
	}
}

// lookAgainLocked calls resize at the moment at which a state may be over by itself. The moment of the state before
// counts no longer: its wait ends.
func (p *pool) lookAgainLocked(state poolState) {
	if p.stopLook != nil {
		p.stopLook()
		p.stopLook = nil
	}
	var at time.Time
	opts := p.source.Options()
	switch {
	case state == poolPausing:
		at = p.pausesUntil
	case state == poolFull && opts.WarmFollowsUse && opts.ProcessIdle > 0:
		at = time.Unix(0, p.lastUse.Load()).Add(opts.ProcessIdle)
	default:
		return
	}
	wait, stop := context.WithCancel(p.source.life)
	p.stopLook = stop
	p.source.Go(func() { // ends at that time, with the next decision, or with the supplier
		if backoff.Wait(wait, time.Until(at)) == nil {
			p.resize()
		}
	})
}

// pause ends the warm servers and those that start, after a check of the server that has failed, and starts none for d.
func (p *pool) pause(d time.Duration) {
	p.mu.Lock()
	p.pausesUntil = time.Now().Add(d)
	p.mu.Unlock()
	p.resize()
}

// takeWarm returns a warm server, or nil if there is none.
func (p *pool) takeWarm() *Session {
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

// keepWarm keeps one warm server, until life ends. It pauses after a start that failed, and after
// a server that ended before anybody took it: some end when they have been idle for a while.
func (p *pool) keepWarm(life context.Context) {
	pauses := NewPauses()
	for life.Err() == nil {
		s, err := p.startWarm(life)
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
	return !p.pausesUntil.IsZero() && p.source.server.Load() == nil
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

// startWarm starts a server for the pool, and reports the result.
func (p *pool) startWarm(life context.Context) (*Session, error) {
	t := turn{s: p.source}
	defer t.endTurn()
	began := time.Now()
	s, _, err := p.source.dial(life, &t)
	switch {
	case err == nil:
		p.source.log.Info("warm server starts", "duration", time.Since(began))
	case !isCancelled(err):
		p.noteFailure(err, time.Since(began))
	}
	return s, err
}

// noteFailure reports a server that did not start, or ended before anybody took it.
func (p *pool) noteFailure(err error, took time.Duration) {
	p.source.NoteFailure(err)
	p.source.limited.Warn("warm server start failed", "duration", took, "err", err)
}

// isCancelled reports whether a start ended because its caller cancelled it.
func isCancelled(err error) bool { return errors.Is(err, context.Canceled) }
