package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// spawnFactor is by how much longer the gateway waits for the client's own initialize
// while a process boots that was just spawned: it could not answer sooner anyway.
const spawnFactor = 3

// start drives one start of a session. [Next] alone decides what comes next: start turns reports into its
// events, and performs its actions. Its goroutine tells the starter how the start has ended.
type start struct {
	*client
	starter  starter
	supplier *handshake.Supplier
	attempt  int // its number, from 1
	state    StartState
	began    time.Time
	span     trace.Span

	mu        sync.Mutex    // guards events
	events    []StartEvent  // that the starter tells
	wake      chan struct{} // says that there are some
	afterLoss bool          // sessionLife.afterLoss when it began
	// leftAfter is how long a client that had been told nothing had waited when it closed the connection, else 0. It
	// is set before the start is told ConnectionClosed, and read after that.
	leftAfter time.Duration
	// booting is the session that is being started, for what it says on stderr; nil if there is none.
	booting atomic.Pointer[handshake.Session]

	// Other events arrive here. A channel is nil when nothing comes from it, yet or any more.
	dialed   chan bool     // the server can take initialize; true: its process was just spawned
	handled  chan struct{} // closed when dialed has been acted on: params has what is known by then
	done     chan opened
	delay    <-chan time.Time
	late     <-chan time.Time // the initialization timeout; nil once the start is late
	starting <-chan time.Time // it is time to tell those who wait that the start goes on
	reports  int              // how often they have been told

	// The actions need these.
	spawned bool                 // the server is a process that has just been spawned
	cancel  context.CancelFunc   // ends what is under way
	params  chan json.RawMessage // gives the params of initialize to open, once
	sent    sentParams           // those that it has given

	// The start has ended with these.
	result  opened
	failure *handshake.Failure // set in the state Failed
}

// opened is the result of openSession.
type opened struct {
	attachment *attachment   // nil after an error
	from       string        // the source of the session, for log and metrics
	waited     time.Duration // of the start, how long the gateway waited for the client
	err        error
}

// starter begins starts, one after the other, and is told what comes of them. It does not wait then.
type starter interface {
	holder // of the session
	// nextParams returns the params with which the client's session is initialized, and reports whether they are those
	// of the client.
	nextParams() (params json.RawMessage, isOwn bool)
	// startIsLate says that the initialization timeout is over. The start goes on.
	startIsLate(s *start)
	// started takes the session, unless the starter has told the start something that it has not seen. It reports
	// whether it has.
	started(s *start) bool
	// startFailed says that there is no session, and s.failure why.
	startFailed(s *start)
}

// newStart returns a start for a client, with its first state.
func newStart(c *client, of starter, supplier *handshake.Supplier, attempt int, first StartState) *start {
	s := &start{
		client: c, starter: of, supplier: supplier, attempt: attempt, state: first, began: time.Now(),
		wake: make(chan struct{}, 1), dialed: make(chan bool, 1), handled: make(chan struct{}),
		done: make(chan opened, 1), params: make(chan json.RawMessage, 1),
	}
	if first == Joining {
		s.params <- nil
	}
	return s
}

// beginStart begins the start.
func (s *start) beginStart() {
	s.c.SawAttempt()
	s.late = time.After(s.opts.Times().InitializationTimeout)
	s.span = s.c.StartSpan(mcp.MethodInitialize, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("mcp.method.name", mcp.MethodInitialize),
		attribute.Int("mcp_sse.attempt", s.attempt), attribute.Bool("mcp_sse.session.lost", s.afterLoss)))
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(s.forwarded())
	s.supplier.Go(func() { s.done <- s.openSession(ctx) }) // ends with the start, or ctx
	s.supplier.Go(s.drive)                                 // ends soon after its connection, or with openSession
}

// tellEvent tells the start of an event.
func (s *start) tellEvent(event StartEvent) {
	s.mu.Lock()
	s.events = append(s.events, event)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // it will look
	}
}

// nextEvent removes and returns the next event that the start has been told.
func (s *start) nextEvent() (event StartEvent, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) == 0 {
		return "", false
	}
	event = s.events[0]
	s.events = s.events[1:]
	return event, true
}

// unseen returns the events that the start has been told and has not seen.
func (s *start) unseen() []StartEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// drive takes the start to its end, and tells the starter.
func (s *start) drive() {
	defer s.cancel()
	for !s.state.Over() {
		event := s.awaitEvent()
		next, action := Next(s.state, event)
		if action == UseSession && !s.starter.started(s) {
			s.done <- s.result // what it was told comes first
			continue
		}
		s.state = next
		s.doAction(action)
		if event == Dialed {
			close(s.handled)
		}
	}
	switch s.state {
	case Failed:
		s.starter.startFailed(s)
	case Again:
		s.starter.happened(s, life.Again)
	}
}

// awaitEvent returns what happens next.
func (s *start) awaitEvent() StartEvent {
	for {
		if event, ok := s.nextEvent(); ok {
			return event
		}
		select {
		case <-s.wake: // it was told something
		case s.spawned = <-s.dialed:
			return Dialed
		case <-s.delay:
			s.delay = nil
			return DelayOver
		case <-s.starting:
			s.reports++
			s.reportStarting(s.reports)
		case <-s.late:
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

// doAction performs an action of a move.
func (s *start) doAction(action StartAction) {
	took := time.Since(s.began) - s.result.waited
	switch action {
	case StartDelay:
		s.delay = s.afterDelay()
	case SendSynthetic:
		s.sent = sentSynthetic
		s.params <- s.synthetic()
	case SendOwn:
		params, isOwn := s.starter.nextParams()
		s.sent = sentOwn
		if !isOwn { // a later initialize has come, whose params are not kept
			s.sent = sentSynthetic
		}
		s.params <- params
	case AnnounceLate:
		s.late = nil
		s.starter.startIsLate(s)
	case StartReports:
		if s.starting == nil {
			s.starting = time.Tick(startingEvery)
		}
	case Cancel:
		s.cancel()
	case UseSession: // started has taken it
	case DiscardSession:
		s.reportSession(took)
		if s.state == Gone {
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
		if s.state == Gone {
			s.noteLostToStart(s.leftAfter, 0)
		}
		s.endSpan(metrics.HandshakeCanceled)
	}
}

// refusesClient reports whether the server has refused the params of the client's own
// initialize, which then says nothing about the server. Without auto-initialize these are
// params that it has accepted before.
func (s *start) refusesClient() bool {
	return s.sent == sentOwn && s.failure.Refusal != nil && s.opts.autoInitializes()
}

// isLate reports whether the initialization timeout was over before the start had ended, or was cancelled.
func (s *start) isLate() bool { return s.late == nil }

// reportCancelled counts a start that was ended. One that took too long for the client is a
// failure.
func (s *start) reportCancelled(took time.Duration) {
	switch {
	case s.isLate():
		failure := s.lateFailure(s.attempt, s.opts.Times().InitializationTimeout, s.lastWords())
		s.countFailure(failure, took)
		if !s.shares() {
			s.limited().Warn("session start failed", s.failureAttrs(s.attempt, failure, took)...)
		}
	case s.result.from != handshake.FromShared:
		s.opts.Metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", took)
	}
}

// endSpan ends the span of a start, which failed with errorType unless that is empty.
func (s *start) endSpan(errorType string) {
	s.span.SetAttributes(attribute.String("mcp_sse.session.source", s.result.from))
	connstate.EndSpan(s.span, errorType, "")
}

// reportUsed reports that the client uses the session. isFirst says that it had been told nothing before.
func (s *start) reportUsed(isFirst bool) {
	s.reportSession(time.Since(s.began) - s.result.waited)
	s.endSpan("")
	if s.afterLoss && !s.shares() { // the supplier counts the loss of a shared session, once
		s.opts.Metrics.SessionRestarted()
	}
	if waited := s.c.LeftAfter(); waited > 0 && isFirst {
		s.noteLostToStart(waited, time.Since(s.c.Opened()))
	}
}

// reportSession reports a start that worked.
func (s *start) reportSession(took time.Duration) {
	a, from := s.result.attachment, s.result.from
	attrs := []any{"from", from, "attempt", s.attempt, "duration", took}
	if result := a.session.Result(); result != nil {
		s.c.SawServer(connstate.Server(result.Server()))
		attrs = append(attrs, a.session.ServerAttrs()...)
	}
	if from == handshake.FromShared {
		s.log().Info("session taken", attrs...)
		return
	}
	s.opts.Metrics.HandshakeDone(metrics.HandshakeOK, "", "", took)
	s.supplier.NoteStart()
	s.log().Info("session started", attrs...)
}

// leastWait is how long a client must have waited to count as lost to the start: one that leaves
// sooner has only looked.
const leastWait = time.Second

// noteLostToStart reports a client that has left, after it had waited, before its server was ready.
// ready is when that was, after the client's coming; 0 if it never was.
func (s *start) noteLostToStart(waited, ready time.Duration) {
	if waited < leastWait || !s.opts.autoInitializes() {
		return
	}
	s.opts.Metrics.ClientLostToStart()
	learns := s.learnForNext()
	client := s.c.Snapshot().Program()
	if !s.opts.Losses.First(client, time.Now()) {
		return
	}
	attrs := []any{"client", client, "waited", waited.Round(time.Millisecond)}
	if ready > 0 {
		attrs = append(attrs, "ready", ready.Round(time.Millisecond))
	}
	switch opts := s.supplier.Options(); {
	case learns:
		attrs = append(attrs, "remedy", "none is needed: the next such client is answered from memory")
	case opts.Boots && opts.Warm == 0:
		attrs = append(attrs, "remedy", "keep one warm: warm 1")
	}
	s.log().Warn("client left before its server was ready", attrs...)
}

// learnForNext has the server say what the next client like this one, which has left before the server was
// ready, gets from memory. It reports whether that is so: it is known, or being learned.
func (s *start) learnForNext() (learns bool) {
	memory := s.supplier.Options().Memory
	params, _ := s.starter.nextParams()
	client, plain := remember.ClientOf(params, s.who())
	if !s.supplier.LearnsAlone() || !plain {
		return false
	}
	if memory.Answers(client) != nil {
		return true
	}
	select {
	case <-s.supplier.LearnInBackground(params, s.who()): // at once: none may begin now
		return false
	default:
		return true
	}
}

// lastWords returns what the server that is being started has said on stderr, as the end of a sentence.
func (s *start) lastWords() string {
	if booting := s.booting.Load(); booting != nil {
		return booting.LastWords()
	}
	return ""
}

// openSession attaches the connection to an initialized session. It reports to the start when the
// server can take initialize, and waits for its params then.
func (s *start) openSession(ctx context.Context) opened {
	var a *attachment
	passesOn := len(s.c.Client().Header) > 0 || s.c.Client().Context != nil // so no server that was started before
	session, source, err := s.supplier.Open(ctx, handshake.OpenOptions{
		Party: s.party(), Who: s.who(), AnyServer: !passesOn,
		Attach: func(session *handshake.Session, spawned bool) {
			a = s.attach(session, s.starter)
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
		a = s.attach(session, s.starter)
	}
	return opened{a, source, waited, nil}
}
