package handshake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
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

// run is what the goroutine of a bridge knows: it gets the connection its sessions, one
// after the other. Other goroutines do not use it. They add to Bridge.initializes,
// set Bridge.needed, take Bridge.current away, and wake it.
type run struct {
	*Bridge
	ctx      context.Context // ends with the connection
	supplier *Supplier       // of the last attempt

	// own are the params of the client's own initialize, with which the next session is
	// initialized; nil for the synthetic initialize. The client's last initialize sets
	// them, and the server's refusal takes them away.
	own json.RawMessage
	// waiting are the initialize requests that wait for the next session, whose result answers
	// them.
	waiting []waitingInitialize
	// follows says what the next session follows.
	follows predecessor

	// attempts counts the starts since a session proved itself, and cause is the phase and the
	// reason of the last one that failed.
	attempts int
	cause    string
	// pauses gives the pauses between failed starts. It begins again when a session proves
	// itself. pause is the one before the next start.
	pauses *backoff.Backoff
	pause  time.Duration
}

// predecessor is what a session of a connection follows.
type predecessor uint8

const (
	// first: the connection has had no session. Its client learns of the first one by the
	// announcement.
	first predecessor = iota
	// afterInitialize: the client's own initialize asked for another session.
	afterInitialize
	// afterReplacement: another server has taken the place of the one before. The client gets its
	// state back, and learns that lists may have changed.
	afterReplacement
	// afterRest: the client was told what is remembered of the server.
	afterRest
	// afterLoss: as afterReplacement, and the loss is counted.
	afterLoss
)

// waitingInitialize is an initialize request of the client that waits for a session.
type waitingInitialize struct {
	*connstate.Request
	version string      // that it requests
	late    *time.Timer // answers it with an error
}

// run gets the connection sessions until it is closed, or drains without one.
func (b *Bridge) run(ctx context.Context) {
	r := &run{Bridge: b, ctx: ctx, supplier: b.opts.Supplier(), pauses: newBackoff()}
	defer r.end()
	for r.awaitAttempt() && r.restUntilNeeded() {
		s := r.newStart()
		switch s.drive(); s.state {
		case Started:
			r.takeIntoUse(s.result.attachment)
			r.serve(s.result.attachment)
		case Failed:
			r.fail(s.failure, s.endedIn)
		case Again:
			r.attempts = 0
		}
	}
}

// awaitAttempt waits until the next attempt is due: for the end of the pause after a
// failed one, which the client's own initialize ends, or until a request revives a
// connection that has given up. Another server ends both. It reports false if there will be
// none.
func (r *run) awaitAttempt() bool {
	var due <-chan time.Time
	paused := r.pause > 0
	if paused {
		due = time.After(r.pause)
		r.pause = 0
	}
	for paused || r.gaveUp() {
		select {
		case <-due:
			paused = false
		case <-r.wake:
			came, _ := r.takeInitializes()
			paused = paused && !came
		case <-r.supplier.Replaced():
			paused = false
			r.startAnew()
		case <-r.ctx.Done():
			return false
		}
	}
	return r.c.State() == connstate.Initializing || r.c.Move(connstate.Initializing) == nil
}

// startAnew makes the next attempt the first one with another server. What the one before said is over.
func (r *run) startAnew() {
	r.supplier = r.opts.Supplier()
	r.told.Store(nil)
	if r.follows != first {
		r.follows = afterReplacement
	}
	r.forgetFailures()
	r.failure.Store(r.lateFailure(1))
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.retryAt.IsZero() {
		r.reviveLocked()
	}
}

// setCurrent makes a the current attachment, unless an initialize waits.
func (r *run) setCurrent(a *attachment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.initializes) > 0 {
		return false
	}
	r.current.Store(a)
	return true
}

// takeInitializes takes the waiting initialize requests, and makes the params of the last one those
// of later sessions. came reports whether there were any, and more whether the client, which has
// used no session yet, declares more than the synthetic initialize.
func (r *run) takeInitializes() (came, more bool) {
	r.mu.Lock()
	initializes := r.initializes
	r.initializes = nil
	r.mu.Unlock()
	for _, request := range initializes {
		m := request.Message
		request.Message = nil // its version is all that its answer needs
		late := time.AfterFunc(r.opts.Times().InitializeTimeout, func() { r.Refused(request, r.overdue()) })
		// Those that are answered wait no more.
		r.waiting = slices.DeleteFunc(r.waiting,
			func(w waitingInitialize) bool { return r.c.Request(w.ID) != w.Request })
		r.waiting = append(r.waiting, waitingInitialize{request, RequestedVersion(m.Params()), late})
		more = more || !r.used.Load() && r.exceeds(m, r.synthetic())
		if !r.shares() && len(m.Params()) > 0 && len(m.Params()) <= maxParams {
			r.own = bytes.Clone(m.Params())
		}
	}
	return len(initializes) > 0, more
}

// synthetic returns the params of the synthetic initialize: with the version of a client
// that has negotiated one earlier.
func (b *Bridge) synthetic() json.RawMessage {
	params, version := b.opts.Params, b.c.Client().Version
	if params == nil || version == "" {
		return params
	}
	return jsonrpc.SetMember(params, json.RawMessage(strconv.Quote(version)), "protocolVersion")
}

// takeWaiting removes and returns the waiting initialize requests.
func (r *run) takeWaiting() []waitingInitialize {
	waiting := r.waiting
	r.waiting = nil
	for _, w := range waiting {
		w.late.Stop()
	}
	return waiting
}

// takeIntoUse announces the session, answers waiting initialize requests, restores the
// client's state and opens the gate.
func (r *run) takeIntoUse(a *attachment) {
	if waited := r.c.LeftAfter(); waited > 0 && r.follows == first {
		r.noteLostToStart(waited, time.Since(r.c.Opened()))
	}
	if result := a.session.Result(); result != nil {
		if r.follows == first {
			r.announce(result.Response(r.autoID()))
		}
		for _, w := range r.takeWaiting() {
			w.Answer(result.Answer(w.ID, w.version), "")
		}
	}
	a.noteMissing()
	if r.follows == afterRest && !r.shares() {
		r.lookBefore(a)
	}
	a.deliverEarly()
	r.compare(a)
	if r.follows == afterLoss && !r.shares() { // the supplier counts the loss of a shared session, once
		r.opts.Metrics.SessionRestarted()
	}
	if r.follows != first {
		r.state.restore(r.ctx, a, r.limited())
	}
	if release := r.openGate(a); release != nil {
		release(r.send)
		if r.follows == afterReplacement || r.follows == afterLoss {
			if result := a.session.Result(); result != nil { // the lists may have changed with the session
				r.notifyListsChanged(result, func(string) bool { return true })
			}
		}
	}
}

// openGate opens the gate for a session and returns the function that releases the
// messages in it. It returns nil if the session is lost or replaced already, or the
// connection drains.
func (r *run) openGate(a *attachment) (release func(func(*connstate.Request) bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current.Load() == a {
		release, _ = r.c.Open() // nil if draining or closed
	}
	return release
}

// serve waits until the connection is closed, the session is lost or replaced, or its server
// is replaced. A session that is lost before it has proved itself counts as a failed start.
func (r *run) serve(a *attachment) {
	idle := r.awaitIdle()
	for r.current.Load() == a {
		replaced := a.session.Replaced()
		if r.initializing.Load() { // the next session needs the params, once they have worked
			replaced = nil
		}
		select {
		case <-a.session.Over():
			r.lose(a, a.session.Why())
		case <-replaced:
			if !r.initializing.Load() { // since before the select
				a.retire(ErrReplaced)
			}
		case <-idle:
			r.endIdle(a)
			idle = r.awaitIdle()
		case <-r.wake: // somebody else has noticed, or the client's own initialize is answered
		case <-r.ctx.Done():
			r.lose(a, errGone)
		}
	}
	switch {
	case a.lost == nil:
		r.follows = afterInitialize
	case errors.Is(a.lost, ErrReplaced):
		r.follows = afterReplacement
	case errors.Is(a.lost, errIdle):
		r.follows = afterRest
	default:
		r.follows = afterLoss
	}
	if r.follows != afterInitialize && r.own == nil {
		r.used.Store(false) // the next session is unused: the client may still declare more
	}
	switch {
	case r.ctx.Err() != nil && !r.shares():
		a.session.CloseAfterLook(errGone)
	case r.ctx.Err() != nil:
		a.close(errGone)
	case r.c.State() == connstate.Draining:
	case r.follows == afterInitialize:
		a.close(errSuperseded)
		r.attempts = 0
	case r.shares(): // the supplier logs its loss, once
		r.forgetFailures()
	case r.follows == afterRest:
		r.forgetFailures()
		r.limited().Info("session ended: its client has not used it", "duration", a.session.Age())
	case r.follows == afterReplacement:
		r.limited().Info("session replaced", "duration", a.session.Age(), "inFlight", r.c.InFlight())
	default:
		r.handleLoss(a)
	}
	r.failure.Store(r.lateFailure(r.attempts + 1))
}

// handleLoss reports the loss of the client's own session, and sets the pause before
// the next attempt.
func (r *run) handleLoss(a *attachment) {
	age := a.session.Age()
	r.limited().Warn("session lost", "duration", age, "err", a.lost)
	r.supplier.NoteLoss(a.lost, !a.session.Proven())
	if a.session.Proven() {
		r.forgetFailures()
		return
	}
	r.pause = r.pauses.Next()
	r.countFailure(endedSoon(a.lost), age)
	if r.attempts < r.opts.MaxHandshakeAttempts {
		return
	}
	crashed := &Failure{
		Phase: PhaseCreation, Reason: metrics.ReasonGaveUp,
		Details: "the server ends soon after each start", Err: a.lost,
	}
	r.reportFailure(crashed, 0, false)
	r.fail(crashed, Started)
}

func (r *run) forgetFailures() {
	r.attempts, r.pauses = 0, newBackoff()
}

// fail handles a failed attempt. After the last one it answers all waiting requests with
// the failure; before, they wait for the next attempt, unless the server has never worked
// and the last attempt failed in the same way. If the server refused the client's own
// params, its refusal answers the client's initialize. in is the state of the start in which
// it failed.
func (r *run) fail(failure *Failure, in StartState) {
	last := r.attempts >= r.opts.MaxHandshakeAttempts
	cause := string(failure.Phase) + failure.Reason
	hopeless := cause == r.cause && r.attempts > 1 && !r.supplier.Worked()
	r.cause = cause
	reported := *failure
	reported.Attempt, reported.RetryAfter, reported.Refusal = r.attempts, r.pauses.Next(), nil
	r.failure.Store(&reported)
	var refused []waitingInitialize
	switch {
	case in == InitializingOwn && failure.Refusal != nil: // other requests wait for a session with the synthetic params
		r.own = nil
		refused = r.takeWaiting()
	case in == InitializingSynthetic && r.own != nil: // the next attempt differs from this one
		hopeless = false
	}
	r.announceFailure(&reported)
	for _, w := range refused {
		w.Answer(failure.Refusal.WithID(w.ID), metrics.ErrorInitialization)
	}
	if !last {
		r.pause = reported.RetryAfter
	}
	if !last && !hopeless {
		if _, err := r.c.Fail(nil); err != nil { // it drains: awaitAttempt ends run
			r.pause = 0
		}
		return
	}
	for _, waited := range r.refuse(&reported, last) {
		r.Refused(waited, &reported)
	}
	for _, w := range r.takeWaiting() {
		r.Refused(w.Request, &reported)
	}
}

// refuse makes the gate refuse requests until the next attempt, and returns the messages
// that wait at the gate. With giveUp, a request after the retry time of the failure, or
// the client's own initialize, causes that attempt.
func (r *run) refuse(failure *Failure, giveUp bool) []*connstate.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	gated, err := r.c.Fail(failure)
	switch {
	case err != nil: // it drains: awaitAttempt ends run
		r.pause = 0
	case giveUp:
		r.retryAt = time.Now().Add(failure.RetryAfter)
	}
	return gated
}

// reportLate announces to a client that has had no session that its start takes long. The
// attempt goes on: late is not failed.
func (r *run) reportLate() {
	limit := r.opts.Times().InitializationTimeout
	r.log().Info("session start takes long", "waited", limit)
	failure := r.lateFailure(r.attempts)
	r.failure.Store(failure)
	r.announceFailure(failure)
}

// end answers the initialize requests that still wait. If the connection is closed, it leaves
// the sessions that are retired.
func (r *run) end() {
	r.mu.Lock()
	r.ended = true
	retired := slices.Clone(r.retired)
	r.mu.Unlock()
	if r.ctx.Err() != nil {
		for _, c := range retired {
			c.close(errGone)
		}
	}
	r.takeInitializes()
	for _, w := range r.takeWaiting() {
		r.Refused(w.Request, connstate.ErrDraining)
	}
}
