package bridge

import (
	"time"

	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
)

// idleCheck returns the time between two looks whether the session is idle; 0: it never is.
func (l *sessionLife) idleCheck() time.Duration {
	opts := l.supplier.Options()
	if opts.ProcessIdle <= 0 || opts.Memory == nil || l.shares() {
		return 0
	}
	return opts.IdleCheck()
}

// isIdle reports whether the client has not used its session for ProcessIdle, and the session has nothing of the
// client. asks says that the server has asked something.
func (l *sessionLife) isIdle(a *attachment, asks bool) bool {
	if l.c.InFlight() > 0 || asks {
		a.usage.noteMessage()
	}
	return a.usage.idleFor() >= l.supplier.Options().ProcessIdle && !a.usage.stateful.Load() &&
		l.state.Told != life.ToldOutdated && a.session.Result() != nil && !l.settings.hasSubscriptions()
}
