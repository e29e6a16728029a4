package bridge

import (
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/closed"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// The actions of a move. The driver calls them with mu held; what they put into todo follows in that order.

// takeServer takes the supplier of now, and is told if another one takes its place.
func (l *sessionLife) takeServer() {
	before, now := l.supplier, l.opts.Supplier()
	if now == before {
		return
	}
	l.supplier, l.since = now, time.Time{}
	l.forgetFailures()
	l.doLater(func() {
		now.Join(l)
		if before != nil {
			before.Leave(l)
		}
	})
}

// nextStart returns a start of the next session. needed says that a message of the client needs the server.
func (l *sessionLife) nextStart(needed bool) *start {
	first := Dialing
	switch {
	case l.shares():
		first = Joining
	case l.own != nil:
		first = DueOwn
	case !l.opts.autoInitializes():
		first = Joining
	case needed || len(l.initializes) > 0 || len(l.c.Queued()) > 0:
		first = DueSynthetic
	}
	s := newStart(l.client, l, l.supplier, l.failures.attempts, first)
	s.afterLoss = l.afterLoss
	if l.hasLists() {
		s.tellEvent(ListsTold)
	}
	return s
}

// noteFailure keeps a failure, for which a start or the loss of a session has been counted, and sets the pause
// before the next start.
func (l *sessionLife) noteFailure(s step) {
	var failure *handshake.Failure
	switch s.event {
	case life.LostSoon:
		l.pause, l.failure = l.failures.pauses.Next(), nil
		return
	case life.LostLast:
		failure = crashed(s.session.session.Why())
	default:
		failure = l.start.failure
		l.failures.cause = string(failure.Phase) + failure.Reason
	}
	reported := *failure
	reported.Attempt, reported.RetryAfter, reported.Refusal = l.failures.attempts, l.failures.pauses.Next(), nil
	l.failure, l.pause = &reported, reported.RetryAfter
	if s.before.Told == life.ToldNothing {
		l.doLater(func() { l.announceFailure(&reported) })
	}
}

// crashed is the failure of a server that ends soon after each start.
func crashed(why error) *handshake.Failure {
	return &handshake.Failure{
		Phase: handshake.PhaseCreation, Reason: metrics.ReasonGaveUp,
		Details: "the server ends soon after each start", Err: why,
	}
}

// noteLoss reports the loss of the client's own session. The supplier reports that of a shared one, once.
func (l *sessionLife) noteLoss(s step) {
	if l.shares() || s.before.Phase == life.Finishing {
		return
	}
	a, attempt, supplier := s.session, l.failures.attempts, l.supplier
	why := a.session.Why()
	soon := s.event != life.Lost
	l.doLater(func() {
		age := a.session.Age()
		l.limited().Warn("session lost", "duration", age, "err", why)
		supplier.NoteLoss(why, soon)
		if soon {
			l.countFailure(handshake.EndedSoon(why), age)
		}
		if s.event == life.LostLast {
			l.reportFailure(supplier, attempt, crashed(why), 0, false)
		}
	})
}

// retireSession lets the session finish its answers.
func (l *sessionLife) retireSession(s step) {
	a := l.session
	l.session = nil
	hasAnswers := s.event == life.Replaced || s.event == life.Retired // one that is lost or idle has none to come
	if hasAnswers {
		l.retiring = append(l.retiring, a)
	}
	l.doLater(func() {
		switch s.event {
		case life.Idle:
			a.retireSession(handshake.ErrIdle)
			l.limited().Info("session ended: its client has not used it", "duration", a.session.Age())
		case life.Replaced:
			a.retireSession(handshake.ErrReplaced)
		}
		if hasAnswers && s.before.Phase != life.Finishing && !l.shares() { // that of a shared one the supplier logs
			l.limited().Info("session replaced", "duration", a.session.Age(), "inFlight", l.c.InFlight())
		}
		if closed.Is(a.session.Done()) { // before it was noted
			l.sessionDone(a)
		}
	})
}

// countUnbegun counts a connection that ends before it is known whether memory has something for it: each
// connection counts once.
func (l *sessionLife) countUnbegun(s step) {
	if s.before.Phase.Recalls() && s.before.Told == life.ToldNothing && l.failures.attempts == 0 {
		l.doLater(func() { l.opts.Metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", time.Since(l.c.Opened())) })
	}
}

// closeSessions ends all sessions, with the connection, and the life.
func (l *sessionLife) closeSessions() {
	current, retiring := l.session, l.retiring
	l.session, l.retiring = nil, nil
	l.doLater(func() {
		switch {
		case current == nil:
		case l.shares():
			current.close(errGone)
		default:
			current.session.CloseAfterLook(errGone)
		}
		for _, a := range retiring {
			a.close(errGone)
		}
		l.supplier.Leave(l)
	})
}

// dismissTimeout bounds how long the stream of a dismissed client may take to write what
// it still has to.
const dismissTimeout = 10 * time.Second

// endConnection answers the requests that wait, and closes the stream when all are answered.
func (l *sessionLife) endConnection() {
	quiet, err := l.c.Drain()
	if err != nil {
		return // it drains or is closed already
	}
	l.opts.Supplier().Go(func() { // ends with the connection
		select {
		case <-quiet:
			l.c.CloseGracefully(connstate.ClosedServer, dismissTimeout)
		case <-l.c.Done():
		}
	})
}
