package bridge

import (
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
)

// lookFirst is how long the messages of a client that has rested wait for the look at its session.
const lookFirst = time.Second

// prepare brings a session into use, in the background.
func (l *sessionLife) prepare(s step) {
	a, supplier := l.session, l.supplier
	known := s.before.Told == life.ToldNearest || s.before.Told == life.ToldLists
	first := s.before.Told == life.ToldNothing
	l.later(func() {
		a.session.Observe(a)
		if !a.session.CanLook() {
			l.happened(a, life.Unlookable)
		}
		supplier.Go(func() { // ends with the session; each step is bounded
			if known && a.session.CanLook() && !l.shares() {
				l.lookBefore(a)
			}
			a.early.deliver()
			if !first {
				l.clientState.restore(l.ctx, a, l.limited())
			}
			l.prepared(a)
		})
	})
}

func (l *sessionLife) looked(a *attachment) {
	if a.session.Looked() != nil {
		l.happened(a, life.Looked)
	} else {
		l.happened(a, life.NotLooked)
	}
}

// lookBefore looks at a session before its client's messages can change what it says.
func (l *sessionLife) lookBefore(a *attachment) {
	select {
	case <-a.session.StartLook():
	case <-a.early.asks: // it may want its answer first
	case <-time.After(lookFirst):
	case <-a.session.Over():
	case <-l.ctx.Done():
	}
}

// prepared has the session used.
func (l *sessionLife) prepared(a *attachment) {
	l.mu.Lock()
	defer l.unlock()
	switch {
	case l.session != a:
	case len(l.c.Waiting()) > 0:
		l.move(life.PreparedWaits)
	case l.shares() || l.opts.Params == nil || a.own || l.state.Declared == life.DeclaredRefused:
		l.move(life.PreparedUsed)
	default:
		l.move(life.PreparedUnused)
	}
}

// release sends what waits at the gate, in order, until nothing does or the session is another one.
func (l *sessionLife) release(a *attachment) {
	for {
		w := l.nextWaiting(a)
		if w == nil {
			return
		}
		if a.send(w.Request) {
			l.c.Sent(w)
			continue
		}
		l.notTaken(w)
		return
	}
}

// nextWaiting returns the next message that waits for a session; nil if that is not the current one any more, or
// nothing waits: then later messages pass.
func (l *sessionLife) nextWaiting(a *attachment) *connstate.Waiting {
	l.mu.Lock()
	defer l.unlock()
	if l.session != a {
		return nil
	}
	w := l.c.Next()
	if w == nil {
		l.move(life.Emptied)
	}
	return w
}

// notTaken has a message that a session has not taken wait for the next one. There may be one already.
func (l *sessionLife) notTaken(w *connstate.Waiting) {
	l.mu.Lock()
	defer l.unlock()
	verdict := l.state.Phase.Takes(w.ID != "", false)
	if verdict == life.Wait {
		if err := l.c.PutBack(w, l.hasLists()); err != nil {
			l.later(func() { l.Refused(w.Request, err) })
			return
		}
		l.move(life.Needed)
		return
	}
	l.c.Sent(w)
	l.later(func() { l.pass(w.Request) })
}
