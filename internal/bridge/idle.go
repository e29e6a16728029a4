package bridge

import (
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
)

// usage is how a client uses a session, as far as it decides whether the session may end when it is
// idle.
type usage struct {
	last atomic.Int64 // when the last message passed, in Unix nanoseconds
	// stateful says that the server has something of this session that no other one would have: a task.
	stateful atomic.Bool
}

// note notes a message that passes now, and returns when that is, in Unix nanoseconds.
func (u *usage) note() (at int64) {
	at = time.Now().UnixNano()
	u.last.Store(at)
	return at
}

// idleFor returns the time since the last message. The start of the session counts as one.
func (u *usage) idleFor() time.Duration { return time.Since(time.Unix(0, u.last.Load())) }

// watchIdle begins to look whether the session is idle, with mu held.
func (l *sessionLife) watchIdle(a *attachment) {
	if opts := l.supplier.Options(); l.idle == nil && opts.ProcessIdle > 0 && opts.Memory != nil && !l.shares() {
		l.idle = time.AfterFunc(opts.IdleCheck(), func() { l.checkIdle(a) })
	}
}

// checkIdle ends a session that its client has not used for ProcessIdle, and that has nothing of it.
func (l *sessionLife) checkIdle(a *attachment) {
	asks := a.session.Asks()
	l.mu.Lock()
	defer l.unlock()
	if l.session != a || l.idle == nil {
		return
	}
	opts := l.supplier.Options()
	limit := opts.ProcessIdle
	if limit <= 0 || opts.Memory == nil { // since a reload: nobody would answer for the server
		l.idle = nil
		return
	}
	if l.c.InFlight() > 0 || asks {
		a.usage.note()
	}
	if a.usage.idleFor() < limit || a.usage.stateful.Load() || l.state.Told == life.ToldOutdated ||
		a.session.Result() == nil || l.clientState.hasSubscriptions() {
		l.idle.Reset(opts.IdleCheck())
		return
	}
	l.move(life.Idle)
}
