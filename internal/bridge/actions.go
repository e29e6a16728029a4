package bridge

import (
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

var (
	// errGone is the close reason of sessions that end with their connection.
	errGone = errors.New("the client's connection was closed")
	// errSuperseded is the close reason of a session that the client's own initialize
	// replaces.
	errSuperseded = errors.New("the client has opened a session with capabilities of its own")
)

// do does an action of the table, with mu held. What it puts into todo follows in that order.
func (l *sessionLife) do(action life.Action, s step) {
	switch action {
	case life.Recall:
		l.ask(false)
	case life.RecallNow:
		l.ask(true)
	case life.StartMoment:
		l.after(l.opts.Times().AnnounceDelay, life.MomentOver)
	case life.Learn:
		l.learn()
	case life.StopWaiting:
		l.stopTimer()
		l.question, l.learning = nil, nil
	case life.TellMemory:
		l.tellMemory(s)
	case life.TellIfDifferent:
		l.tellIfDifferent(s)
	case life.TellCompared:
		l.tellCompared(s)
	case life.TellAllChanged:
		l.tellAllChanged(s)

	case life.BeginStart:
		l.failures.attempts++
		l.start = l.newStart(s.event == life.Needed)
		l.later(l.start.begin)
	case life.StartNeeded:
		l.start.tell(Needed)
	case life.StartOwn:
		if l.own == nil { // its params cannot be used, but it needs an answer
			l.start.tell(Needed)
		} else {
			l.start.tell(OwnInitialize)
		}
	case life.StartMore:
		l.start.tell(MoreDeclared)
	case life.StartReplaced:
		l.start.tell(ServerReplaced)
	case life.AbandonStart:
		if l.start != nil {
			l.start.first = s.before.Told == life.ToldNothing
			l.start.tell(ConnectionClosed)
		}
	case life.AnswerRefusal:
		l.answerRefusal(l.start.failure.Refusal)
	case life.NoteFailure:
		l.noteFailure(s)
	case life.ForgetFailures:
		l.forgetFailures()
	case life.StartPause:
		l.after(l.pause, life.PauseOver)
	case life.SetRetry:
		l.retry = time.Now().Add(l.pause)
	case life.RefuseWaiting:
		l.refuseWaiting()
	case life.TakeServer:
		l.takeServer()

	case life.AnnounceResult:
		if result := l.session.session.Result(); result != nil {
			l.later(func() { l.announce(result.Response(l.autoID())) })
		}
	case life.AnswerInitializes:
		l.answerInitializes(l.session.session.Result())
	case life.Prepare:
		l.prepare(s)
	case life.Release:
		a, supplier := l.session, l.supplier
		l.later(func() { supplier.Go(func() { l.release(a) }) }) // ends with what waits, or the session
	case life.NoteLoss:
		l.noteLoss(s)
	case life.RetireSession:
		l.retireSession(s)
	case life.SupersedeSession:
		a := l.session
		l.session = nil
		l.later(func() { a.close(errSuperseded) })
	case life.CloseSession:
		l.countUnbegun(s)
		l.closeSessions()
	case life.RefuseDraining:
		l.refuseInitializes(connstate.ErrDraining)
	case life.EndConnection:
		l.later(l.endConnection)
	}
}

// takeServer takes the supplier of now, and is told if another one takes its place.
func (l *sessionLife) takeServer() {
	before, now := l.supplier, l.opts.Supplier()
	if now == before {
		return
	}
	l.supplier, l.since = now, time.Time{}
	l.forgetFailures()
	l.later(func() {
		now.Join(l)
		if before != nil {
			before.Leave(l)
		}
	})
}

// learn has the server say in the background what it says to such a client.
func (l *sessionLife) learn() {
	done, supplier, params, asked := &learning{}, l.supplier, l.params(), l.asked
	l.learning = done
	l.later(func() {
		over := supplier.LearnUnlessSince(asked, params, l.who())
		supplier.Go(func() { // ends with that start
			<-over
			l.happened(done, life.Learned)
		})
	})
}

func (l *sessionLife) forgetFailures() {
	l.failures = failures{pauses: handshake.NewPauses()}
	l.failure = nil
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
		failure = crashed(s.session.lost)
	default:
		failure = l.start.failure
		l.failures.cause = string(failure.Phase) + failure.Reason
	}
	reported := *failure
	reported.Attempt, reported.RetryAfter, reported.Refusal = l.failures.attempts, l.failures.pauses.Next(), nil
	l.failure, l.pause = &reported, reported.RetryAfter
	if s.before.Told == life.ToldNothing {
		l.later(func() { l.announceFailure(&reported) })
	}
}

// crashed is the failure of a server that ends soon after each start.
func crashed(why error) *handshake.Failure {
	return &handshake.Failure{Phase: handshake.PhaseCreation, Reason: metrics.ReasonGaveUp, Details: "the server ends soon after each start", Err: why}
}

// noteLoss reports the loss of the client's own session. The supplier reports that of a shared one, once.
func (l *sessionLife) noteLoss(s step) {
	if l.shares() || s.before.Phase == life.Finishing {
		return
	}
	a, attempt, supplier := s.session, l.failures.attempts, l.supplier
	soon := s.event != life.Lost
	l.later(func() {
		age := a.session.Age()
		l.limited().Warn("session lost", "duration", age, "err", a.lost)
		supplier.NoteLoss(a.lost, soon)
		if soon {
			l.countFailure(handshake.EndedSoon(a.lost), age)
		}
		if s.event == life.LostLast {
			l.reportFailure(supplier, attempt, crashed(a.lost), 0, false)
		}
	})
}

// retireSession lets the session finish its answers.
func (l *sessionLife) retireSession(s step) {
	a := l.session
	l.session = nil
	if s.event == life.Replaced { // one that is lost has nothing to finish, nor has one that is idle
		l.retiring = append(l.retiring, a)
	}
	l.later(func() {
		switch s.event {
		case life.Idle:
			a.finish(handshake.ErrIdle)
			l.limited().Info("session ended: its client has not used it", "duration", a.session.Age())
		case life.Replaced:
			a.finish(handshake.ErrReplaced)
			if !l.shares() { // the supplier logs it
				l.limited().Info("session replaced", "duration", a.session.Age(), "inFlight", l.c.InFlight())
			}
		}
		select {
		case <-a.session.Done(): // before it was noted
			l.sessionDone(a)
		default:
		}
	})
}

// countUnbegun counts a connection that ends before it is known whether memory has something for it: each
// connection counts once.
func (l *sessionLife) countUnbegun(s step) {
	if s.before.Phase == life.Recalling && s.before.Told == life.ToldNothing && l.failures.attempts == 0 {
		l.later(func() { l.opts.Metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", time.Since(l.c.Opened())) })
	}
}

// closeSessions ends all sessions, with the connection, and the life.
func (l *sessionLife) closeSessions() {
	current, retiring := l.session, l.retiring
	l.session, l.retiring = nil, nil
	l.later(func() {
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

// notifyListsChanged tells the client of the lists that have changed, as far as it was promised to be told. It
// does not wait.
func (b *Bridge) notifyListsChanged(promised *handshake.Result, changed func(kind string) bool) {
	for _, kind := range remember.Kinds() {
		if changed(kind) && promised.Advertises(kind, "listChanged") {
			b.c.SendNow("", jsonrpc.NewNotification("notifications/"+kind+"/list_changed", nil))
		}
	}
}
