package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
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
// after the other. Other goroutines do not use it. They leave requests in Bridge.inbox,
// set Bridge.chosen, take Bridge.current away, and wake it.
type run struct {
	*Bridge
	ctx      context.Context    // ends with the connection
	supplier *sessions.Supplier // of the last attempt

	params   json.RawMessage // of the next initialize; nil: the client sends its own
	own      bool            // params are the client's own
	offered  json.RawMessage // params of the client that the next attempt takes if this one fails
	waiting  []waitingInitialize
	attempts int              // since a session proved itself
	cause    string           // of the last failed attempt, as far as its phase and reason say
	pauses   *backoff.Backoff // reset when a session proves itself
	pause    time.Duration    // before the next attempt
	served   bool             // the connection has had a session
	replaces bool             // the next session replaces one
	lost     bool             // that was lost
}

// waitingInitialize is an initialize request of the client that waits for a session.
type waitingInitialize struct {
	*connstate.Request
	version string      // that it requests
	late    *time.Timer // answers it with an error
}

// run gets the connection sessions until it is closed, or drains without one.
func (b *Bridge) run(ctx context.Context) {
	r := &run{Bridge: b, ctx: ctx, supplier: b.opts.Supplier(), params: b.synthetic(), pauses: sessions.NewBackoff()}
	defer r.end()
	for r.awaitAttempt() {
		switch c, failure := r.attempt(); {
		case failure != nil:
			r.fail(failure)
		case c != nil:
			r.takeIntoUse(c)
			r.serve(c)
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
			came, _ := r.readInbox(false)
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

// startAnew makes the next attempt the first one with another server.
func (r *run) startAnew() {
	r.supplier = r.opts.Supplier()
	r.forgetFailures()
	r.failure.Store(r.lateFailure(1))
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.retryAt.IsZero() {
		r.reviveLocked()
	}
}

// opened is the result of open.
type opened struct {
	client *client       // nil after an error
	from   string        // the source of the session, for log and metrics
	held   time.Duration // of the start; the gateway waited for the client meanwhile
	err    error
}

// attempt makes one attempt to get a session. It returns neither client nor failure if
// the connection is closed, or if the client has declared more than the handshake did, or
// the server has been replaced: then another attempt follows at once. The client is the
// current one.
func (r *run) attempt() (*client, *handshake.Failure) {
	ctx, cancel := context.WithCancel(r.forwarded())
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	if kept := r.clientParams.Load(); kept != nil {
		r.params = *kept
	}
	if r.supplier != r.opts.Supplier() {
		r.startAnew()
	}
	replaced := r.supplier.Replaced()
	r.attempts++
	r.c.SawAttempt()
	span := r.c.StartSpan(mcp.MethodInitialize, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("mcp.method.name", mcp.MethodInitialize),
		attribute.Int("mcp_sse.attempt", r.attempts), attribute.Bool("mcp_sse.session.lost", r.lost)))
	began := time.Now()
	chosen := make(chan json.RawMessage) // the params, when initialize may go out
	done := make(chan opened, 1)
	supplier := r.supplier
	supplier.Go(func() { done <- r.open(ctx, supplier, chosen) }) // ends with the start, or ctx
	late := time.NewTimer(r.opts.Times().InitializationTimeout)
	defer late.Stop()
	sent, again, slow := false, false, false
	for {
		if _, exceeds := r.readInbox(sent); exceeds {
			again = true
			cancel()
		}
		var send chan<- json.RawMessage
		if !sent && (r.chosen.Load() || r.params == nil) {
			send = chosen
		}
		select {
		case send <- r.params:
			sent = true
			r.chosen.Store(true)
		case <-r.wake: // chosen or the inbox has changed
		case <-replaced:
			replaced, again = nil, true
			cancel()
		case <-late.C:
			slow = true
			r.reportLate()
		case o := <-done:
			if o.err == nil && !again && !r.setCurrent(o.client) {
				done <- o // there is something in the inbox
				continue
			}
			c, failure := r.finish(o, again, slow, time.Since(began)-o.held)
			endSpan(span, o, failure)
			return c, failure
		}
	}
}

// open attaches the connection to an initialized session. Its initialize waits for
// params, those of the gateway until hold ends.
func (b *Bridge) open(ctx context.Context, from *sessions.Supplier, params <-chan json.RawMessage) opened {
	var c *client
	passesOn := len(b.c.Client().Header) > 0 || b.c.Client().Context != nil // so no server that was started before
	session, source, err := from.Open(ctx, sessions.Client{
		Party: b.party(), AnyServer: !passesOn,
		Attach: func(s *sessions.Session) {
			c = b.attach(s)
			if !b.chosen.Load() && b.opts.Params != nil {
				from.Go(func() { b.hold(ctx, s) }) // ends with ctx, or soon after it
			}
		},
		Params: params,
	})
	var held time.Duration
	if session != nil && !b.shares() {
		held = session.Held
	}
	switch {
	case err != nil:
		return opened{nil, source, held, err}
	case c == nil: // a shared session
		c = b.attach(session)
	}
	return opened{c, source, held, nil}
}

// hold waits for the client's own initialize, and then chooses the synthetic one: when the
// client has been silent for AnnounceDelay, but not while the server's process boots. Until
// then it could not answer anyway.
func (b *Bridge) hold(ctx context.Context, s *sessions.Session) {
	if silence := b.opts.Times().AnnounceDelay - time.Since(b.c.Opened()); silence > 0 {
		select {
		case <-time.After(silence):
		case <-ctx.Done():
			return
		}
	}
	if !b.chosen.Load() {
		s.AwaitBoot()
	}
	if ctx.Err() == nil {
		b.chooseSynthetic()
	}
}

// setCurrent makes c the current client, unless there are requests in the inbox.
func (r *run) setCurrent(c *client) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.inbox) > 0 {
		return false
	}
	r.current.Store(c)
	return true
}

// finish reports the result of an attempt. again says that another one follows at once,
// late that the start took too long for the client, which is a failure only if no session
// comes of it.
func (r *run) finish(o opened, again, late bool, took time.Duration) (*client, *handshake.Failure) {
	switch over := again || r.ctx.Err() != nil; {
	case over && o.err != nil:
		switch {
		case late:
			r.countFailure(r.lateFailure(r.attempts), took)
		case o.from != sessions.FromShared:
			r.opts.Metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", took)
		}
	case o.err != nil:
		failure, _ := errors.AsType[*handshake.Failure](o.err)
		r.reportFailure(failure, took)
		return nil, failure
	default:
		r.reportSession(o.client, o.from, took)
		if !over {
			return o.client, nil
		}
		r.lose(o.client, errSuperseded)
		o.client.close(errSuperseded)
	}
	if again {
		r.attempts = 0
	}
	return nil, nil
}

// readInbox takes the requests out of the inbox, and makes their params those of later
// sessions. sent says that the initialize of the current attempt has gone out; more
// reports that a request declares more than that. came reports whether there were any.
func (r *run) readInbox(sent bool) (came, more bool) {
	r.mu.Lock()
	inbox := r.inbox
	r.inbox = nil
	r.mu.Unlock()
	for _, request := range inbox {
		m := request.Message
		request.Message = nil // its version is all that its answer needs
		late := time.AfterFunc(r.opts.Times().InitializeTimeout, func() { r.Refused(request, r.overdue()) })
		r.waiting = slices.DeleteFunc(r.waiting, func(w waitingInitialize) bool { return r.c.Request(w.ID) != w.Request }) // answered
		r.waiting = append(r.waiting, waitingInitialize{request, handshake.RequestedVersion(m.Params()), late})
		switch {
		case !sent:
			r.adopt(m)
		case !r.settled.Load() && r.exceeds(m, r.params):
			r.adopt(m)
			more = true
		case !r.own && r.usable(m):
			r.offered = bytes.Clone(m.Params())
		}
	}
	return len(inbox) > 0, more
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

// adopt makes the client's params those of later sessions.
func (r *run) adopt(m *jsonrpc.Message) {
	r.chosen.Store(true)
	if r.usable(m) {
		r.useOwn(bytes.Clone(m.Params()))
	}
}

// usable reports whether sessions can be initialized with the client's params.
func (r *run) usable(m *jsonrpc.Message) bool {
	return !r.shares() && len(m.Params()) > 0 && len(m.Params()) <= maxParams
}

func (r *run) useOwn(params json.RawMessage) {
	r.own, r.params, r.offered = true, params, nil
	r.settled.Store(true)
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
func (r *run) takeIntoUse(c *client) {
	if result := c.session.Result(); result != nil {
		if !r.served {
			r.announce(result.Response(r.autoID()))
		}
		for _, w := range r.takeWaiting() {
			w.Answer(result.Answer(w.ID, w.version), "")
		}
	}
	c.deliverEarly()
	if r.lost && !r.shares() { // the supplier counts the loss of a shared session, once
		r.opts.Metrics.SessionRestarted()
	}
	if r.served {
		r.memory.restore(r.ctx, c, r.limited())
	}
	if release := r.openGate(c); release != nil {
		release(r.send)
		if r.replaces {
			r.notifyListsChanged(c)
		}
	}
	r.served, r.replaces, r.lost = true, false, false
}

// openGate opens the gate for a session and returns the function that releases the
// messages in it. It returns nil if the session is lost or replaced already, or the
// connection drains.
func (r *run) openGate(c *client) (release func(func(*connstate.Request) bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current.Load() == c {
		release, _ = r.c.Open() // nil if draining or closed
	}
	return release
}

// serve waits until the connection is closed, the session is lost or replaced, or its server
// is replaced. A session that is lost before it has proved itself counts as a failed start.
func (r *run) serve(c *client) {
	for r.current.Load() == c {
		replaced := c.session.Replaced()
		if r.initializing.Load() { // the next session needs the params, once they have worked
			replaced = nil
		}
		select {
		case <-c.session.Over():
			r.lose(c, c.session.Why())
		case <-replaced:
			if !r.initializing.Load() { // since before the select
				c.retire(sessions.ErrReplaced)
			}
		case <-r.wake: // somebody else has noticed, or the client's own initialize is answered
		case <-r.ctx.Done():
			r.lose(c, errGone)
		}
	}
	r.replaces = c.lost != nil
	r.lost = r.replaces && !errors.Is(c.lost, sessions.ErrReplaced)
	switch {
	case r.ctx.Err() != nil:
		c.close(errGone)
	case r.c.State() == connstate.Draining:
	case c.lost == nil:
		c.close(errSuperseded)
		r.attempts = 0
	case r.shares(): // the supplier logs its loss, once
		r.forgetFailures()
	case !r.lost:
		r.limited().Info("session replaced", "duration", c.session.Age(), "inFlight", r.c.InFlight())
	default:
		r.handleLoss(c)
	}
	r.failure.Store(r.lateFailure(r.attempts + 1))
}

// handleLoss reports the loss of the client's own session, and sets the pause before
// the next attempt.
func (r *run) handleLoss(c *client) {
	age := c.session.Age()
	r.limited().Warn("session lost", "duration", age, "err", c.lost)
	r.supplier.NoteLoss(c.lost, !c.session.Proven())
	if c.session.Proven() {
		r.forgetFailures()
		return
	}
	r.pause = r.pauses.Next()
	r.countFailure(sessions.EndedSoon(c.lost), age)
	if r.attempts < r.opts.MaxHandshakeAttempts {
		return
	}
	crashed := &handshake.Failure{
		Phase: handshake.PhaseCreation, Reason: metrics.ReasonGaveUp,
		Details: "the server ends soon after each start", Err: c.lost,
	}
	r.reportFailure(crashed, 0)
	r.fail(crashed)
}

func (r *run) forgetFailures() {
	r.attempts, r.pauses = 0, sessions.NewBackoff()
}

// fail handles a failed attempt. After the last one it answers all waiting requests with
// the failure; before, they wait for the next attempt, unless the server has never worked
// and the last attempt failed in the same way. If the server refused the client's own
// params, its refusal answers the client's initialize.
func (r *run) fail(failure *handshake.Failure) {
	last := r.attempts >= r.opts.MaxHandshakeAttempts
	cause := string(failure.Phase) + failure.Reason
	hopeless := cause == r.cause && r.attempts > 1 && !r.supplier.Worked()
	r.cause = cause
	reported := *failure
	reported.Attempt, reported.RetryAfter, reported.Refusal = r.attempts, r.pauses.Next(), nil
	r.failure.Store(&reported)
	var refused []waitingInitialize
	switch {
	case r.own && failure.Refusal != nil: // other requests wait for a session with the synthetic params
		r.own, r.params = false, r.synthetic()
		refused = r.takeWaiting()
	case r.offered != nil:
		r.useOwn(r.offered)
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
func (r *run) refuse(failure *handshake.Failure, giveUp bool) []*connstate.Request {
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
	r.readInbox(false)
	for _, w := range r.takeWaiting() {
		r.Refused(w.Request, connstate.ErrDraining)
	}
}
