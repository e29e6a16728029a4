package bridge

import (
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// gatekeeper opens the gate for a session that is prepared, and has the messages that wait there.
type gatekeeper interface {
	// prepared says that the session can be used.
	prepared(a *attachment)
	// nextWaiting returns the next message that waits for the session; nil if there is none, or it is for another one.
	nextWaiting(a *attachment) *connstate.Queued
	// notTaken gives a message back that the session has not taken.
	notTaken(w *connstate.Queued)
}

// lookFirst is how long the messages of a client that has rested wait for the look at its session.
const lookFirst = time.Second

// prepare brings a session into use. It ends with the session; each step is bounded. looks has the session looked at
// before, and restores has it get the state of the client.
func (a *attachment) prepare(gate gatekeeper, looks, restores bool) {
	if looks {
		a.lookBefore()
	}
	a.early.deliver()
	if restores {
		a.settings.restore(a.ctx, a.set, a.limited())
	}
	gate.prepared(a)
}

// lookBefore looks at a session before its client's messages can change what it says.
func (a *attachment) lookBefore() {
	select {
	case <-a.session.StartLook():
	case <-a.early.asks: // it may want its answer first
	case <-time.After(lookFirst):
	case <-a.session.Over():
	case <-a.ctx.Done():
	}
}

// sendWaiting sends what waits at the gate, in order, until nothing does or the session is another one.
func (a *attachment) sendWaiting(gate gatekeeper) {
	for {
		w := gate.nextWaiting(a)
		if w == nil {
			return
		}
		if !a.send(w.Request) {
			gate.notTaken(w)
			return
		}
		a.c.Sent(w)
	}
}
