package bridge

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// sessionLife gets a connection its sessions, one after the other, and lets it rest in between. What may happen
// and what follows from it is the table in package life. sessionLife turns what happens into the events
// of that table, and does its actions; actions.go has these.
//
// An event makes its move at once, under mu. What a move has to do outside of mu is put into todo, which one
// goroutine at a time does in order. Nothing in it waits for a client, a server, memory or a clock: what would has
// a goroutine of its own.
type sessionLife struct {
	*Bridge

	// serving gets messages at once; nil in all phases but Awake. It is set under mu.
	serving atomic.Pointer[attachment]

	mu    sync.Mutex // guards what follows; taken before the lock of the connection
	state life.State

	// What the life has now. Of others events are dropped.
	supplier *handshake.Supplier
	start    *start
	session  *attachment
	question *question
	asked    time.Time // when the last one was asked
	timer    *timer    // of the moment or the pause
	learning *learning // in the background
	idle     *time.Timer

	// retiring are on sessions that finish their answers: cancellations, and answers to questions of their
	// servers, still go there.
	retiring []*attachment
	// answers are what the client was told, as far as that is kept; nil: nothing is. Memory that is not newer than
	// since is none for this client, and it has been told that the kinds of lists in changed have changed.
	answers *remember.Answers
	since   time.Time
	changed []string

	// own are the params of the client's own initialize, or nil. Without auto-initialize they have worked.
	own         json.RawMessage
	initializes []*waitingInitialize
	failures    failures
	// failure is what a message learns that waits in vain; nil: that the start goes on.
	failure *handshake.Failure
	lost    bool          // the last session was lost
	pause   time.Duration // before the next start
	retry   time.Time     // in GivenUp: from then on a request causes a start

	todo       []func()
	performing bool // somebody does what is in todo
}

// timer is one run of a timer.
type timer struct{ *time.Timer }

// learning is a start in the background that the life waits for.
type learning struct{ _ int }

// failures are the starts of a connection that have failed in a row.
type failures struct {
	attempts int    // since a session proved itself, with the start that is under way
	cause    string // the phase and the reason of the last failure
	pauses   *backoff.Backoff
}

// begin begins the life. Its end is Closed, for which Wait of the supplier waits.
func (l *sessionLife) begin() {
	l.mu.Lock()
	defer l.unlock()
	l.state = life.State{Phase: life.Recalling, Told: life.ToldNothing, Declared: life.DeclaredNothing}
	l.failures.pauses = handshake.NewPauses()
	l.takeServer()
	l.ask(false)
}

// happened makes the move of an event. source is what it comes from: a start, a session, a question, a timer,
// a learning or a supplier; nil for the client and the connection. It does nothing if the life has another one
// now.
func (l *sessionLife) happened(source any, event life.Event) {
	l.mu.Lock()
	defer l.unlock()
	if l.has(source) {
		l.move(event)
	}
}

// has reports whether a source of events is one that the life has now.
func (l *sessionLife) has(source any) bool {
	switch s := source.(type) {
	case *start:
		return l.start == s
	case *attachment:
		return l.session == s
	case *question:
		return l.question == s
	case *timer:
		return l.timer == s
	case *learning:
		return l.learning == s
	case *handshake.Supplier:
		return l.supplier == s
	}
	return true
}

// step is what the actions of a move need to know of it.
type step struct {
	event   life.Event
	before  life.State
	answers *remember.Answers // those before
	changed []string
	session *attachment // the one before, or nil
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
	if next.Phase != s.before.Phase {
		l.leavePhase()
	}
	l.note(s)
	for _, action := range actions {
		l.do(action, s)
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
	if p := l.state.Phase; p != life.Recalling && p != life.Waking {
		l.question = nil
	}
}

func (l *sessionLife) stopTimer() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// note keeps what an event says.
func (l *sessionLife) note(s step) {
	switch s.event {
	case life.OwnInitialize, life.MoreDeclared:
		if l.state.Told == life.ToldResult && s.before.Told != life.ToldResult {
			l.forgetAnswers()
		}
	case life.Up:
		l.session, l.failure, l.lost = l.start.result.attachment, nil, false
		l.session.noteMissing(s.before.Told, l.answers)
		if l.state.Told == life.ToldResult {
			l.forgetAnswers()
		}
		if kinds := l.session.changed; kinds != nil {
			a := l.session
			l.later(func() { l.listsChanged(a, kinds...) })
		}
	case life.Looked:
		now := *l.session.session.Looked()
		if l.state.Told == life.ToldOutdated {
			break
		}
		if l.answers != nil && s.before.Told != life.ToldResult {
			now.Initialize = l.answers.Initialize // the client knows nothing else
		}
		l.answers = &now
	case life.NotLooked:
		if s.before.Told == life.ToldNearest {
			l.forgetAnswers()
		}
	case life.Unlookable:
		l.forgetAnswers()
	case life.Known, life.Replaced:
		l.lost = false
	case life.Idle:
		if s.before.Told != life.ToldLists || l.answers == nil {
			l.answers = l.session.session.WithoutLists()
		}
	case life.Lost, life.LostSoon, life.LostLast:
		l.lost = true
		if s.before.Told == life.ToldResult {
			l.forgetAnswers()
		}
	}
}

func (l *sessionLife) forgetAnswers() { l.answers, l.changed = nil, nil }

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
		l.show(now)
	}
	l.serving.Store(nil)
	switch now {
	case life.Awake:
		l.serving.Store(l.session)
		l.watchIdle(l.session)
	case life.Fresh:
		l.watchIdle(l.session)
	}
}

// show moves the connection to the state that people see. It fails where the connection drains, or is closed:
// that event follows.
func (l *sessionLife) show(phase life.Phase) {
	switch phase.Shown() {
	case connstate.Initializing.String():
		_ = l.c.Move(connstate.Initializing)
	case connstate.Resting.String():
		_ = l.c.Move(connstate.Resting)
	case connstate.Ready.String():
		_ = l.c.Move(connstate.Ready)
	case connstate.Failed.String():
		_ = l.c.Move(connstate.Initializing) // if it was ready
		_ = l.c.Move(connstate.Failed)
	}
}

// refuseWaiting gives what waits the failure.
func (l *sessionLife) refuseWaiting() {
	refused, failure := l.c.TakeRefused(), l.failure
	l.later(func() {
		for _, r := range refused {
			l.Refused(r, failure)
		}
	})
	l.refuseInitializes(failure)
}

// later has f done outside of mu, after what was put there before.
func (l *sessionLife) later(f func()) { l.todo = append(l.todo, f) }

// unlock does what is to be done outside of mu, unless another goroutine is doing so, and unlocks mu.
func (l *sessionLife) unlock() {
	defer l.mu.Unlock()
	if l.performing {
		return
	}
	l.performing = true
	for len(l.todo) > 0 {
		next := l.todo[0]
		l.todo = l.todo[1:]
		l.mu.Unlock()
		next()
		l.mu.Lock()
	}
	l.todo, l.performing = nil, false
}

// after begins a timer, at the end of which an event happens. It takes the place of the one before.
func (l *sessionLife) after(d time.Duration, event life.Event) {
	l.stopTimer()
	t := &timer{}
	l.timer = t
	t.Timer = time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.unlock()
		if l.timer == t {
			l.timer = nil
			l.move(event)
		}
	})
}

// take decides about a message that no session has taken at once. It returns the session that is to get it, or why it
// is refused, or neither if memory answers it, or it waits at the gate.
func (l *sessionLife) take(r *connstate.Request) (to *attachment, err error) {
	l.mu.Lock()
	defer l.unlock()
	m := r.Message
	isRequest := m.Kind == jsonrpc.Request
	if l.state.Phase == life.Asleep && m.Method == mcp.MethodRootsChanged {
		return nil, nil // the session to come asks for the roots anyway
	}
	if answer := l.fromMemory(r); answer != nil {
		l.later(answer) // after that to an initialize which may be there
		return nil, nil
	}
	switch l.state.Phase.Takes(isRequest, !time.Now().Before(l.retry)) {
	case life.Pass:
		return l.session, nil
	case life.Use:
		l.move(life.Needed)
		return l.session, nil
	case life.Wait:
		// Before the client has been told anything, its own initialize may follow a notification.
		if isRequest || l.state.Told != life.ToldNothing {
			l.move(life.Needed)
		}
		return nil, l.c.Wait(r, l.hasLists())
	}
	return nil, l.whyRefused()
}

// hasLists reports whether the client has lists, perhaps of before: then it calls tools, and takes the wait for a
// slow answer.
func (l *sessionLife) hasLists() bool {
	told := l.state.Told
	return told == life.ToldNearest || told == life.ToldLists || told == life.ToldOutdated && l.answers != nil
}

// whyRefused returns what a message learns that the phase refuses.
func (l *sessionLife) whyRefused() error {
	switch l.state.Phase {
	case life.Closed:
		return connstate.ErrClosed
	case life.Finishing, life.Drained, life.Dismissed:
		return connstate.ErrDraining
	}
	l.opts.Metrics.GateRefused(metrics.GateFailed)
	return l.failure
}

// at returns the attachment to the retiring session that is meant; without one the current one.
func (l *sessionLife) at(meant func(*attachment) bool) *attachment {
	l.mu.Lock()
	retiring, current := slices.Clone(l.retiring), l.session
	l.mu.Unlock()
	for _, a := range retiring {
		if meant(a) {
			return a
		}
	}
	return current
}

// phase returns the phase of now.
func (l *sessionLife) phase() life.Phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Phase
}

// onMemory reports whether memory answers the client, and no session is there.
func (l *sessionLife) onMemory() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.AnswersLists()
}

// isStateless reports whether the server of the session, or the remembered one, is one of MCP 2026-07-28.
func (l *sessionLife) isStateless() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil {
		return l.session.session.Stateless()
	}
	return l.answers != nil && l.answers.Stateless
}

// sessionOver has the life go on without a session that is over.
func (l *sessionLife) sessionOver(a *attachment, why error) {
	l.mu.Lock()
	defer l.unlock()
	if l.session != a {
		return
	}
	a.lost = why
	switch {
	case !l.shares() && errors.Is(why, jsonrpc.ErrDismissed):
		l.move(life.Dismiss)
	case errors.Is(why, handshake.ErrReplaced):
		l.move(life.Replaced)
	case l.shares() || a.session.Proven():
		l.move(life.Lost)
	case l.failures.attempts >= l.opts.MaxHandshakeAttempts:
		l.move(life.LostLast)
	default:
		l.move(life.LostSoon)
	}
}

// sessionDone drops a session that has ended.
func (l *sessionLife) sessionDone(a *attachment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retiring = slices.DeleteFunc(l.retiring, func(other *attachment) bool { return other == a })
}

// ServerReplaced has the life go on with another server than that of a supplier. An initialize of the client that is at the server is let
// finish: the next session needs its params, once they have worked.
func (l *sessionLife) ServerReplaced(of *handshake.Supplier) {
	l.mu.Lock()
	defer l.unlock()
	if l.supplier == of && !l.initializeIsOut() {
		l.move(life.Replaced)
	}
}

// initializeIsOut reports whether an initialize of the client is at the server as it is.
func (l *sessionLife) initializeIsOut() bool {
	if l.opts.Params != nil || l.session == nil {
		return false
	}
	waiting := l.c.Waiting()
	return slices.ContainsFunc(l.c.Unanswered(), func(r *connstate.Request) bool {
		return r.Method == mcp.MethodInitialize && !slices.Contains(waiting, r)
	})
}

// initialized notes that the server has answered the client's own initialize, with which the gateway sends none:
// params are those that have worked, or nil.
func (l *sessionLife) initialized(params json.RawMessage) {
	l.mu.Lock()
	if params != nil {
		l.own = params
	}
	supplier := l.supplier
	l.mu.Unlock()
	if supplier.IsReplaced() {
		l.ServerReplaced(supplier)
	}
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
