package bridge

import (
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// beginLife begins the life. Its end is Closed, for which Wait of the supplier waits.
func (l *sessionLife) beginLife() {
	l.mu.Lock()
	defer l.unlock()
	l.state = life.State{Phase: life.Recalling, Told: life.ToldNothing, Declared: life.DeclaredNothing}
	l.failures.pauses = handshake.NewPauses()
	l.takeServer()
	l.askMemory()
}

// happened makes the move of an event. source is what it comes from: a start, a session, a question, a timer,
// a learning or a supplier; nil for the client and the connection. It does nothing if the life has another one
// now.
func (l *sessionLife) happened(source any, event life.Event) {
	l.mu.Lock()
	defer l.unlock()
	if l.hasSource(source) {
		l.move(event)
	}
}

// move makes the move of an event, with mu held.
func (l *sessionLife) move(event life.Event) { l.moveFrom(event, l.answers) }

// moveFrom is move after the client was told answers.
func (l *sessionLife) moveFrom(event life.Event, answers *remember.Answers) {
	next, actions, ok := life.Next(l.state, event)
	if !ok {
		l.log().Error("the table of the life has no such move", "phase", string(l.state.Phase), "event", string(event))
		return
	}
	s := step{event, l.state, answers, l.changed, l.session}
	l.state = next
	if next.Condition() != s.before.Condition() {
		l.tellCondition()
	}
	if next.Phase != s.before.Phase {
		l.leavePhase()
	}
	l.noteEvent(s)
	for _, action := range actions {
		l.doAction(action, s)
	}
	if next.Phase != life.Waking {
		l.start = nil
	}
	l.enterPhase(s.before.Phase)
}

// leavePhase ends what belongs to the phase before.
func (l *sessionLife) leavePhase() {
	l.stopTimer()
	l.learning = nil
	if p := l.state.Phase; !p.Recalls() && p != life.Waking {
		l.question = nil
	}
}

// doAction performs an action of the table, with mu held. The steps that it puts into todo follow in that order.
func (l *sessionLife) doAction(action life.Action, s step) {
	switch action {
	case life.Recall:
		l.askMemory()
	case life.StartMoment:
		l.after(l.opts.Times().AnnounceDelay, life.MomentOver)
	case life.Learn:
		l.learnInBackground()
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
		l.start = l.nextStart(s.event == life.Needed)
		l.doLater(l.start.beginStart)
	case life.StartNeeded:
		l.start.tellEvent(Needed)
	case life.StartOwn:
		l.start.tellEvent(OwnInitialize)
	case life.StartMore:
		l.start.tellEvent(MoreDeclared)
	case life.StartReplaced:
		l.start.tellEvent(ServerReplaced)
	case life.AbandonStart:
		if l.start != nil {
			if s.before.Told == life.ToldNothing && l.c.Reason() == connstate.ClosedClient {
				l.start.leftAfter = time.Since(l.c.Opened())
			}
			l.start.tellEvent(ConnectionClosed)
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
			l.doLater(func() { l.announce(result.Response(l.autoID())) })
		}
	case life.AnswerInitializes:
		l.answerInitializes(l.session.session.Result())
	case life.Prepare:
		l.prepare(s)
	case life.Release:
		a, supplier := l.session, l.supplier
		l.doLater(func() { supplier.Go(func() { a.sendWaiting(l) }) }) // ends with what waits, or the session
	case life.NoteLoss:
		l.noteLoss(s)
	case life.RetireSession:
		l.retireSession(s)
	case life.SupersedeSession:
		a := l.session
		l.session = nil
		l.doLater(func() { a.close(errSuperseded) })
	case life.CloseSession:
		l.countUnbegun(s)
		l.closeSessions()
	case life.RefuseDraining:
		l.refuseInitializes(connstate.ErrDraining)
	case life.EndConnection:
		l.doLater(l.endConnection)
	}
}

// noteEvent keeps what an event says.
func (l *sessionLife) noteEvent(s step) {
	switch s.event {
	case life.Up:
		l.session, l.failure, l.afterLoss = l.start.result.attachment, nil, false
		l.session.noteMissing(s.before.Told, l.answers)
		if kinds := l.session.changed; kinds != nil {
			a := l.session
			l.doLater(func() { l.listsChanged(a, kinds...) })
		}
	case life.Looked:
		now := *l.session.session.Looked()
		if l.state.Told != life.ToldLists {
			break
		}
		if s.before.Told.HasLists() {
			now.Initialize = l.answers.Initialize // the client knows nothing else
		}
		l.answers = &now
	case life.Known, life.Replaced:
		l.afterLoss = false
	case life.Idle:
		if s.before.Told != life.ToldLists {
			l.answers = l.session.session.WithoutLists()
		}
	case life.Lost, life.LostSoon, life.LostLast, life.Retired:
		l.afterLoss = true
	}
	if !l.state.Told.HasLists() {
		l.answers, l.changed = nil, nil
	}
}

// enterPhase shows the phase that the life is in now, and lets messages through in Awake.
func (l *sessionLife) enterPhase(before life.Phase) {
	now := l.state.Phase
	if now == before {
		return
	}
	if l.idle != nil && now != life.Awake {
		l.idle.Stop()
		l.idle = nil
	}
	if now.Shown() != before.Shown() {
		l.show(now.Shown())
	}
	l.direct.Store(nil)
	switch now {
	case life.Awake:
		l.direct.Store(l.session)
		l.watchIdle(l.session)
	case life.Fresh:
		l.watchIdle(l.session)
	}
}

// show moves the connection to the state that people see. It fails where the connection drains, or is closed:
// that event follows.
func (l *sessionLife) show(state connstate.State) {
	switch state {
	case connstate.Draining, connstate.Closed: // the connection moves there itself
		return
	case connstate.Failed:
		_ = l.c.Move(connstate.Initializing) // if it was ready
	}
	_ = l.c.Move(state)
}

// after begins a timer, at the end of which an event happens. It takes the place of the one before.
func (l *sessionLife) after(d time.Duration, event life.Event) {
	l.stopTimer()
	t := &timer{}
	l.timer = t
	t.Timer = time.AfterFunc(d, func() { l.happened(t, event) })
}

// askMemory asks memory, with mu held. A question that is under way and equal is joined. The answer is another event in
// each phase in which it may come.
func (l *sessionLife) askMemory() {
	q := l.questionNow()
	if old := l.question; old != nil && old.equals(q) {
		return
	}
	l.question, l.asked = q, time.Now()
	l.doLater(func() { q.askMemory(l.client, l.answered) })
}

// answered makes the move that follows from the answer to a question.
func (l *sessionLife) answered(q *question) {
	l.mu.Lock()
	defer l.unlock()
	if l.question != q {
		return
	}
	l.question = nil
	event, answers := l.decide(q)
	before := l.answers
	if answers != nil {
		l.answers = answers
	}
	l.moveFrom(event, before)
}

// learnInBackground has the server say in the background what it says to such a client.
func (l *sessionLife) learnInBackground() {
	done, supplier, params, asked := &learning{}, l.supplier, l.params(), l.asked
	l.learning = done
	l.doLater(func() {
		supplier.Go(func() { // ends with that start, and those before it
			supplier.LearnInTurn(asked, params, l.who(), func() bool { return l.isLearning(done) })
			l.happened(done, life.Learned)
		})
	})
}

// isLearning reports whether the life still waits for a start in the background.
func (l *sessionLife) isLearning(of *learning) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.learning == of
}

// prepare brings the session into use, in the background.
func (l *sessionLife) prepare(s step) {
	a, supplier := l.session, l.supplier
	wasTold := s.before.Told != life.ToldNothing
	known := s.before.Told == life.ToldNearest || s.before.Told == life.ToldLists
	l.doLater(func() {
		a.session.Observe(a)
		if !a.session.CanLook() {
			l.happened(a, life.Unlookable)
		}
		looks := known && a.session.CanLook() && !l.shares()
		supplier.Go(func() { a.prepare(l, looks, wasTold) }) // ends with the session
	})
}

// watchIdle begins to look whether the session is idle, with mu held.
func (l *sessionLife) watchIdle(a *attachment) {
	if every := l.idleCheck(); l.idle == nil && every > 0 {
		l.idle = time.AfterFunc(every, func() { l.checkIdle(a) })
	}
}

// checkIdle ends a session that its client has not used for ProcessIdle, and that has nothing of it.
func (l *sessionLife) checkIdle(a *attachment) {
	asks := a.session.Asks()
	l.mu.Lock()
	defer l.unlock()
	every := l.idleCheck()
	switch {
	case l.session != a || l.idle == nil:
	case every == 0: // since a reload: nobody would answer for the server
		l.idle = nil
	case l.isIdle(a, asks):
		l.move(life.Idle)
	default:
		l.idle.Reset(every)
	}
}

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
		!l.state.Told.MayBeOutdated() && a.session.Result() != nil && !l.settings.hasSubscriptions()
}

// listsChanged notes that the server of a session says that lists have changed.
func (l *sessionLife) listsChanged(a *attachment, kinds ...string) {
	l.mu.Lock()
	defer l.unlock()
	if l.session != a {
		for _, kind := range kinds {
			if !slices.Contains(a.changed, kind) {
				a.changed = append(a.changed, kind)
			}
		}
		return
	}
	l.changed, l.since = append(l.changed, kinds...), time.Now()
	slices.Sort(l.changed)
	l.changed = slices.Compact(l.changed)
	l.move(life.ListsChanged)
}
