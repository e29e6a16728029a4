package handshake

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// spawnFactor is by how much longer the gateway waits for the client's own initialize
// while a process boots that was just spawned: it could not answer sooner anyway.
const spawnFactor = 3

// start drives one start of a session. What comes next is decided by [Next]
// alone: start turns what happens into its events, and performs its actions. The goroutine
// of run uses it.
type start struct {
	*run
	state StartState
	began time.Time
	span  trace.Span

	// What happens arrives here. A channel is nil when nothing more can come from it.
	dialed   chan bool     // the server can take initialize; true: its process was just spawned
	handled  chan struct{} // closed when dialed has been acted on: params has what is known by then
	done     chan opened
	replaced <-chan struct{}
	closed   <-chan struct{}
	delay    <-chan time.Time
	late     <-chan time.Time
	starting <-chan time.Time // it is time to tell those who wait that the start goes on
	reports  int              // how often they have been told

	// What the actions need.
	spawned bool                 // the server is a process that has just been spawned
	cancel  context.CancelFunc   // ends what is under way
	params  chan json.RawMessage // gives the params of initialize to open, once

	// What has come of it.
	result  opened
	failure *Failure   // set in the state Failed
	endedIn StartState // the state before the end
	wasLate bool       // the initialization timeout was over
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

// newStart begins a start.
func (r *run) newStart() *start {
	if kept := r.clientParams.Load(); kept != nil { // the client initialized an earlier session itself
		r.own = *kept
	}
	if r.supplier != r.opts.Supplier() {
		r.startAnew()
	}
	r.attempts++
	r.c.SawAttempt()
	s := &start{
		run: r, state: Dialing, began: time.Now(),
		dialed: make(chan bool, 1), handled: make(chan struct{}),
		done: make(chan opened, 1), params: make(chan json.RawMessage, 1),
		replaced: r.supplier.Replaced(), closed: r.ctx.Done(),
		late: time.After(r.opts.Times().InitializationTimeout),
	}
	s.reportProgress()
	s.span = r.c.StartSpan(mcp.MethodInitialize, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("mcp.method.name", mcp.MethodInitialize),
		attribute.Int("mcp_sse.attempt", r.attempts), attribute.Bool("mcp_sse.session.lost", r.follows == afterLoss)))
	switch {
	case r.shares():
		s.state = Joining
	case r.own != nil:
		s.state = DueOwn
	case r.opts.Params == nil:
		s.state = Joining
		s.params <- nil
	case r.needed.Load():
		s.state = DueSynthetic
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(r.forwarded())
	supplier := r.supplier
	supplier.Go(func() { s.done <- r.open(ctx, supplier, s) }) // ends with the start, or ctx
	return s
}

// drive takes the start to its end. In the state Started the session is the current one.
func (s *start) drive() {
	defer s.cancel()
	for !s.state.Over() {
		event := s.await()
		next, action := Next(s.state, event)
		if action == UseSession && !s.setCurrent(s.result.attachment) {
			s.done <- s.result // an initialize of the client came first
			continue
		}
		if next == Abandoned && s.state != Abandoned && s.follows == first && s.c.Reason() == connstate.ClosedClient {
			s.leftAfter = time.Since(s.c.Opened())
		}
		s.endedIn, s.state = s.state, next
		s.do(action)
		if event == Dialed {
			close(s.handled)
		}
	}
}

// await returns what happens next.
func (s *start) await() StartEvent {
	for {
		came, more := s.takeInitializes()
		if came {
			s.answerDuringStart()
			s.reportProgress()
		}
		s.answerGate()
		switch {
		case more:
			return MoreDeclared
		case came && s.own != nil:
			return OwnInitialize
		case came: // its params cannot be used, but it needs an answer
			s.needed.Store(true)
		}
		if s.needed.Load() && (s.state == Dialing || s.state == AwaitingOwn) {
			return Needed
		}
		select {
		case <-s.wake: // an initialize waits, or needed has changed
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
		case <-s.replaced:
			s.replaced = nil
			return ServerReplaced
		case <-s.closed:
			s.closed = nil
			return ConnectionClosed
		case s.result = <-s.done:
			if s.result.err != nil {
				return Down
			}
			return Up
		}
	}
}

// reportProgress begins to tell a client that knows its lists how the start goes on, as far as its requests
// ask for that.
func (s *start) reportProgress() {
	if s.starting == nil && s.told.Load() != nil {
		s.starting = time.Tick(startingEvery)
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
		s.used.Store(true)
		s.params <- s.own
	case AnnounceLate:
		s.wasLate = true
		s.reportLate()
	case Cancel:
		s.cancel()
	case UseSession:
		s.reportSession(s.result.attachment, s.result.from, took)
		s.endSpan("")
	case DiscardSession:
		s.reportSession(s.result.attachment, s.result.from, took)
		if s.leftAfter > 0 {
			s.noteLostToStart(s.leftAfter, time.Since(s.c.Opened()))
		}
		s.lose(s.result.attachment, errSuperseded)
		s.result.attachment.close(errSuperseded)
		s.endSpan("")
	case ReportFailure:
		s.failure, _ = errors.AsType[*Failure](s.result.err)
		s.reportFailure(s.failure, took, s.refusesClient())
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
		failure := s.lateFailure(s.attempts)
		s.countFailure(failure, took)
		if !s.shares() {
			s.limited().Warn("session start failed", s.failureAttrs(failure, took)...)
		}
	case s.result.from != FromShared:
		s.opts.Metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", took)
	}
}

// open attaches the connection to an initialized session. It reports to the start when the
// server can take initialize, and waits for its params then.
func (b *Bridge) open(ctx context.Context, from *Supplier, to *start) opened {
	var a *attachment
	passesOn := len(b.c.Client().Header) > 0 || b.c.Client().Context != nil // so no server that was started before
	session, source, err := from.Open(ctx, openOptions{
		Party: b.party(), Who: b.who(), AnyServer: !passesOn,
		Attach: func(s *Session, spawned bool) {
			a = b.attach(s)
			b.booting.Store(s)
			to.dialed <- spawned
			select {
			case <-to.handled:
			case <-ctx.Done():
			}
		},
		Params: to.params,
	})
	b.booting.Store(nil)
	var waited time.Duration
	if session != nil && !b.shares() {
		waited = session.waitedForParams
	}
	switch {
	case err != nil:
		return opened{nil, source, waited, err}
	case a == nil: // a shared session
		a = b.attach(session)
	}
	return opened{a, source, waited, nil}
}
