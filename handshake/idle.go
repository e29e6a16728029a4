package handshake

import (
	"errors"
	"sync/atomic"
	"time"
)

// errIdle is the reason of a session that has ended because its client has not used it for long.
var errIdle = errors.New("the session was idle")

// usage is how a client uses a session, as far as it decides whether the session may end when it is
// idle.
type usage struct {
	last atomic.Int64 // when the last message passed, in Unix nanoseconds
	// stateful says that the server has something of this session that no other one would have: a task,
	// or lists that it has changed.
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

// checksInIdle is how often a session is looked at in the time after which it is idle.
const checksInIdle = 4

// awaitIdle returns a channel on which it is time to look whether the session is idle; nil if it never
// ends for that.
func (r *run) awaitIdle() <-chan time.Time {
	if limit := r.supplier.opts().ProcessIdle; limit > 0 && !r.shares() {
		return time.After(limit / checksInIdle)
	}
	return nil
}

// endIdle ends a session that its client has not used for ProcessIdle. The client rests on what the session
// has said, if nothing is remembered.
func (r *run) endIdle(a *attachment) {
	// A message that comes from here on is needed by the next session, if it does not reach this one.
	r.needed.Store(false)
	if r.c.InFlight() > 0 || a.session.Asks() {
		a.usage.note()
	}
	result := a.session.Result()
	if result == nil || a.usage.stateful.Load() || r.state.hasSubscriptions() || a.usage.idleFor() < r.supplier.opts().ProcessIdle {
		return
	}
	if r.told.Load() == nil { // its lists could not be read
		r.told.Store(a.session.unread())
	}
	a.retire(errIdle)
}
