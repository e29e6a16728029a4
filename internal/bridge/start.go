package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// spawnFactor is by how much longer the gateway waits for the client's own initialize
// while a process boots that was just spawned: it could not answer sooner anyway.
const spawnFactor = 3

// start drives one start of a session. What comes next is decided by [Next]
// alone: start turns what happens into its events, and performs its actions. Its goroutine
// reports to the life what has come of it.
type start struct {
	*Bridge
	supplier *handshake.Supplier
	attempt  int // its number, from 1
	state    StartState
	began    time.Time
	span     trace.Span

	// events are those that the life tells, guarded by its lock; wake says that there are some.
	events []StartEvent
	wake   chan struct{}
	// followsLoss says that a session was lost before it.
	followsLoss bool
	// first says that the client had been told nothing when it closed the connection. It is set before that is told.
	first bool
	// tells says that the client knows its lists: it is told how the start goes on, as far as its requests ask
	// for that.
	tells atomic.Bool
	// booting is the session that is being started, for what it says on stderr; nil if there is none.
	booting atomic.Pointer[handshake.Session]

	// What else happens arrives here. A channel is nil when nothing more can come from it.
	dialed   chan bool     // the server can take initialize; true: its process was just spawned
	handled  chan struct{} // closed when dialed has been acted on: params has what is known by then
	done     chan opened
	delay    <-chan time.Time
	late     <-chan time.Time
	starting <-chan time.Time // it is time to tell those who wait that the start goes on
	reports  int              // how often they have been told

	// What the actions need.
	spawned bool                 // the server is a process that has just been spawned
	sentOwn bool                 // the client's own initialize went to the server
	cancel  context.CancelFunc   // ends what is under way
	params  chan json.RawMessage // gives the params of initialize to open, once

	// What has come of it.
	result  opened
	failure *handshake.Failure // set in the state Failed
	endedIn StartState         // the state before the end
	wasLate bool               // the initialization timeout was over
	// leftAfter is how long the client of a first start had waited when it closed the connection; 0
	// while it has not.
	leftAfter time.Duration
}

// opened is the result of open.
type opened struct {
	attachment *attachment   // nil after an error
	from       string        // the source of the session, for log and metrics
	waited     time.Duration // of the start, how long the gateway waited for the client
	err        error
}

// newStart returns a start, with mu held. needed says that a message of the client needs the server.
func (l *sessionLife) newStart(needed bool) *start {
	s := &start{
		Bridge: l.Bridge, supplier: l.supplier, attempt: l.failures.attempts, state: Dialing, began: time.Now(),
		followsLoss: l.lost, wake: make(chan struct{}, 1), dialed: make(chan bool, 1), handled: make(chan struct{}),
		done: make(chan opened, 1), params: make(chan json.RawMessage, 1),
	}
	s.tells.Store(l.hasLists())
	hasOwn := l.own != nil && l.state.Declared != life.DeclaredRefused
	switch {
	case l.shares():
		s.state = Joining
	case hasOwn:
		s.state = DueOwn
	case l.opts.Params == nil:
		s.state = Joining
		s.params <- nil
	case needed || len(l.initializes) > 0 || len(l.c.Waiting()) > 0:
		s.state = DueSynthetic
	}
	return s
}

// begin begins the start.
func (s *start) begin() {
	s.c.SawAttempt()
	s.late = time.After(s.opts.Times().InitializationTimeout)
	s.span = s.c.StartSpan(mcp.MethodInitialize, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("mcp.method.name", mcp.MethodInitialize),
		attribute.Int("mcp_sse.attempt", s.attempt), attribute.Bool("mcp_sse.session.lost", s.followsLoss)))
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(s.forwarded())
	s.supplier.Go(func() { s.done <- s.open(ctx) }) // ends with the start, or ctx
	s.supplier.Go(s.drive)                          // ends soon after its connection, or with open
}

// tell tells the start of an event, with the lock of the life held.
func (s *start) tell(event StartEvent) {
	s.events = append(s.events, event)
	s.poke()
}

// tellsProgress has the start tell the client how it goes on.
func (s *start) tellsProgress() {
	s.tells.Store(true)
	s.poke()
}

func (s *start) poke() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look
	}
}

// told removes and returns the next event that the life has told.
func (s *start) told() (event StartEvent, ok bool) {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	if len(s.events) == 0 {
		return "", false
	}
	event = s.events[0]
	s.events = s.events[1:]
	return event, true
}

// drive takes the start to its end, and tells the life.
func (s *start) drive() {
	defer s.cancel()
	for !s.state.Over() {
		event := s.await()
		next, action := Next(s.state, event)
		if action == UseSession && !s.use() {
			s.done <- s.result // what the life has told comes first
			continue
		}
		if next == Abandoned && s.state != Abandoned && s.first && s.c.Reason() == connstate.ClosedClient {
			s.leftAfter = time.Since(s.c.Opened())
		}
		s.endedIn, s.state = s.state, next
		s.do(action)
		if event == Dialed {
			close(s.handled)
		}
	}
	switch s.state {
	case Failed:
		s.life.startFailed(s)
	case Again:
		s.life.happened(s, life.Again)
	}
}

// use gives the session to the life, unless that has told something else before. It reports whether it has.
func (s *start) use() bool {
	l := &s.life
	l.mu.Lock()
	defer l.unlock()
	if len(s.events) > 0 {
		return false
	}
	first := l.state.Told == life.ToldNothing
	s.result.attachment.own = s.sentOwn
	l.later(func() {
		s.reportSession(time.Since(s.began) - s.result.waited)
		s.endSpan("")
		if s.followsLoss && !s.shares() { // the supplier counts the loss of a shared session, once
			s.opts.Metrics.SessionRestarted()
		}
		if waited := s.c.LeftAfter(); waited > 0 && first {
			s.noteLostToStart(waited, time.Since(s.c.Opened()))
		}
	})
	if l.start == s {
		l.move(life.Up)
	}
	return true
}

// startFailed makes the move that follows from a start that has failed.
func (l *sessionLife) startFailed(s *start) {
	worked := s.supplier.Worked()
	l.mu.Lock()
	defer l.unlock()
	switch {
	case l.start != s:
		return
	case l.supplier.IsReplaced(): // since the start has ended
		l.move(life.Again)
		return
	}
	hopeless := l.failures.cause == string(s.failure.Phase)+s.failure.Reason && l.failures.attempts > 1 && !worked &&
		(s.endedIn != InitializingSynthetic || l.own == nil) // else the next start differs from this one
	if s.endedIn == InitializingOwn && s.failure.Refusal != nil && l.opts.Params != nil {
		l.move(life.OwnRefused)
	}
	begins := slices.ContainsFunc(s.events, func(e StartEvent) bool { return e == OwnInitialize || e == MoreDeclared })
	switch {
	case begins: // the client has begun anew since the start has ended
		l.move(life.Failed)
		l.move(life.OwnInitialize)
	case l.failures.attempts >= l.opts.MaxHandshakeAttempts:
		l.move(life.FailedLast)
	case hopeless:
		l.move(life.FailedHopeless)
	default:
		l.move(life.Failed)
	}
}

// await returns what happens next.
func (s *start) await() StartEvent {
	for {
		if event, ok := s.told(); ok {
			return event
		}
		if s.starting == nil && s.tells.Load() {
			s.starting = time.Tick(startingEvery)
		}
		select {
		case <-s.wake: // the life has told something
		case s.spawned = <-s.dialed:
			return Dialed
		case <-s.delay:
			s.delay = nil
			return DelayOver
		case <-s.starting:
			s.reports++
			s.reportStarting(s.reports)
		case <-s.late:
			s.late = nil
			return Late
		case s.result = <-s.done:
			if s.result.err != nil {
				return Down
			}
			return Up
		}
	}
}

// afterDelay returns a channel on which the end of the wait for the client's own initialize
// comes. The wait began with the connection.
func (s *start) afterDelay() <-chan time.Time {
	times := s.opts.Times()
	delay := times.AnnounceDelay
	if s.spawned {
		delay = min(spawnFactor*delay, times.InitializationTimeout/2)
	}
	return time.After(delay - time.Since(s.c.Opened()))
}

// do performs an action.
func (s *start) do(action StartAction) {
	took := time.Since(s.began) - s.result.waited
	switch action {
	case StartDelay:
		s.delay = s.afterDelay()
	case SendSynthetic:
		s.params <- s.synthetic()
	case SendOwn:
		s.sentOwn = true
		s.params <- s.life.ownParams()
	case AnnounceLate:
		s.wasLate = true
		s.life.startIsLate(s)
	case Cancel:
		s.cancel()
	case UseSession: // use has given it to the life
	case DiscardSession:
		s.reportSession(took)
		if s.leftAfter > 0 {
			s.noteLostToStart(s.leftAfter, time.Since(s.c.Opened()))
		}
		s.result.attachment.close(errSuperseded)
		s.endSpan("")
	case ReportFailure:
		s.failure, _ = errors.AsType[*handshake.Failure](s.result.err)
		s.reportFailure(s.supplier, s.attempt, s.failure, took, s.refusesClient())
		s.endSpan(s.failure.Reason)
	case ReportCancelled:
		s.reportCancelled(took)
		if s.leftAfter > 0 {
			s.noteLostToStart(s.leftAfter, 0)
		}
		s.endSpan(metrics.HandshakeCanceled)
	}
}

// refusesClient reports whether the server has refused the params of the client's own
// initialize, which then says nothing about the server. Without auto-initialize these are
// params that it has accepted before.
func (s *start) refusesClient() bool {
	return s.endedIn == InitializingOwn && s.failure.Refusal != nil && s.opts.Params != nil
}

// reportCancelled counts a start that was ended. One that took too long for the client is a
// failure.
func (s *start) reportCancelled(took time.Duration) {
	switch {
	case s.wasLate:
		failure := s.lateFailure(s.attempt, s)
		s.countFailure(failure, took)
		if !s.shares() {
			s.limited().Warn("session start failed", s.failureAttrs(s.attempt, failure, took)...)
		}
	case s.result.from != handshake.FromShared:
		s.opts.Metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", took)
	}
}

// open attaches the connection to an initialized session. It reports to the start when the
// server can take initialize, and waits for its params then.
func (s *start) open(ctx context.Context) opened {
	var a *attachment
	passesOn := len(s.c.Client().Header) > 0 || s.c.Client().Context != nil // so no server that was started before
	session, source, err := s.supplier.Open(ctx, handshake.OpenOptions{
		Party: s.party(), Who: s.who(), AnyServer: !passesOn,
		Attach: func(session *handshake.Session, spawned bool) {
			a = s.attach(session)
			s.booting.Store(session)
			s.dialed <- spawned
			select {
			case <-s.handled:
			case <-ctx.Done():
			}
		},
		Params: s.params,
	})
	s.booting.Store(nil)
	var waited time.Duration
	if session != nil && !s.shares() {
		waited = session.WaitedForParams()
	}
	switch {
	case err != nil:
		return opened{nil, source, waited, err}
	case a == nil: // a shared session
		a = s.attach(session)
	}
	return opened{a, source, waited, nil}
}
