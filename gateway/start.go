package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// launchLocked starts the starting goroutine. b.mu is held.
func (b *bridge) launchLocked() {
	b.starting = true
	b.g.sessions.Go(b.start) // ends with a session, after the last attempt, or with the connection
}

// start opens sessions until one works: the starting goroutine.
func (b *bridge) start() {
	for {
		if gaveUp := b.crashes(); gaveUp != nil {
			b.c.SawFailure(string(gaveUp.Phase))
			b.g.health.started(gaveUp)
			if b.failed(gaveUp) {
				return
			}
		}
		if !b.pause() {
			b.stopStarting(errGone)
			return
		}
		l, params, err := b.attempt()
		switch {
		case b.over():
			b.discard(l)
			b.stopStarting(errGone)
			return
		case b.superseded(params):
			b.discard(l) // the client has come with params of its own
		case err != nil:
			if b.failed(err) {
				return
			}
		default:
			if b.established(l) {
				return
			}
		}
	}
}

// crashes returns a failure when the server has started as often as it may and
// ended soon after each start. For clients that is as if it did not start. It does
// not hold for a shared session: that one client makes the server crash must not
// have the others give up.
func (b *bridge) crashes() *handshake.Failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.g.shared != nil || !b.lostOne || b.attempts < b.g.opts.MaxHandshakeAttempts {
		return nil
	}
	return &handshake.Failure{Phase: handshake.PhaseCreation, Details: "the server ends soon after each start", Err: b.lossErr}
}

// pause waits before a start that follows a failed one, and reports whether to
// start at all.
func (b *bridge) pause() bool {
	b.mu.Lock()
	wait := b.wait
	b.wait = 0
	b.mu.Unlock()
	return b.sleep(wait) && !b.over()
}

func (b *bridge) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.kick:
		return true
	case <-b.c.Done():
		return false
	}
}

// attempt gets one session.
func (b *bridge) attempt() (*link, json.RawMessage, error) {
	ctx, cancel := context.WithCancel(b.forwarded(context.Background()))
	defer cancel()
	b.mu.Lock()
	b.restart = cancel
	if b.over() {
		cancel() // Closed came before there was something to cancel
	}
	b.attempts++
	params, attempt := b.params, b.attempts
	b.mu.Unlock()
	if state := b.c.State(); state != connstate.Initializing {
		if err := b.c.Move(connstate.Initializing); err != nil {
			return nil, params, err
		}
	}
	b.c.SawAttempt()
	began := time.Now()
	l, from, err := b.reach(ctx, params)
	took := time.Since(began)
	b.mu.Lock()
	b.restart = nil
	b.mu.Unlock()
	b.count(ctx, err, attempt, took, from)
	return l, params, err
}

// count tells metrics, health and log how a start went.
func (b *bridge) count(ctx context.Context, err error, attempt int, took time.Duration, from string) {
	failure, isFailure := errors.AsType[*handshake.Failure](err)
	switch {
	case err == nil:
		b.g.metrics.HandshakeDone(metrics.HandshakeOK, "", took, b.c.ShortID())
		if from != fromStart { // its start has been told
			b.log().Debug("session taken", "from", from, "attempt", attempt, "duration", took)
			return
		}
		b.g.health.started(nil)
		b.log().Info("session started", "attempt", attempt, "duration", took)
	case errors.Is(ctx.Err(), context.Canceled) || !isFailure:
		b.g.metrics.HandshakeDone(metrics.HandshakeCanceled, "", took, b.c.ShortID())
	default:
		if from == fromStart {
			b.g.health.started(err)
		}
		b.c.SawFailure(string(failure.Phase))
		b.g.metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), took, b.c.ShortID())
		b.log().Warn("session start failed", "attempt", attempt, "phase", string(failure.Phase), "duration", took, "err", err)
	}
}

// superseded reports whether the params of a start are not wanted any more.
// Such a start does not count as an attempt.
func (b *bridge) superseded(params json.RawMessage) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.supersededLocked(params)
}

func (b *bridge) supersededLocked(params json.RawMessage) bool {
	if bytes.Equal(params, b.params) {
		return false
	}
	b.attempts = max(0, b.attempts-1)
	return true
}

// failed takes a failed start: who waits is told, and another one is due unless
// it was the last. It reports whether it was.
func (b *bridge) failed(err error) bool {
	failure, ok := errors.AsType[*handshake.Failure](err)
	if !ok { // the connection is draining or closed
		b.stopStarting(err)
		return true
	}
	b.mu.Lock()
	last := b.attempts >= b.g.opts.MaxHandshakeAttempts
	told := *failure
	told.Attempt = b.attempts
	if !last {
		told.RetryAfter = b.pauseLocked()
	} else {
		b.starting = false
		b.attempts = b.g.opts.MaxHandshakeAttempts - 1 // the client's own initialize may try once more
	}
	b.failure, b.failedAt = &told, time.Now()
	select {
	case <-b.kick: // it was for the start that has failed
	default:
	}
	openings := b.openings
	b.openings = nil
	announce := !b.known && b.g.params != nil
	var refusal error
	if last {
		refusal = &told
	}
	waited, moveErr := b.c.Fail(refusal) // under the lock: a client that asks again starts anew after it
	b.mu.Unlock()

	if announce {
		b.announce(told.Response(b.autoID()))
	}
	for _, m := range append(openings, waited...) {
		b.Refused(m, &told)
	}
	return last || moveErr != nil && b.stopStarting(moveErr)
}

// stopStarting ends the starting goroutine and answers the client's initialize
// requests that wait for it. It reports true.
func (b *bridge) stopStarting(why error) bool {
	b.mu.Lock()
	b.starting = false
	openings := b.openings
	b.openings = nil
	b.mu.Unlock()
	if _, ok := errors.AsType[*connstate.MoveError](why); ok {
		why = connstate.ErrDraining
	}
	for _, m := range openings {
		b.Refused(m, why)
	}
	return true
}

// established takes a session into use and reports whether it still stands.
func (b *bridge) established(l *link) bool {
	b.mu.Lock()
	if b.supersededLocked(l.params) { // after all
		b.mu.Unlock()
		b.discard(l)
		return false
	}
	again, replaces := b.known, b.lostOne
	b.known, b.lostOne, b.failure = true, false, nil
	b.current.Store(l)
	select {
	case <-b.kick: // it was for this start
	default:
	}
	openings := b.openings
	b.openings = nil
	if b.late != nil {
		b.late.Stop()
		b.late = nil
	}
	b.mu.Unlock()

	b.greet(l, openings, !again)
	l.client.use()
	if replaces && b.g.shared == nil { // a shared one is counted where it is, once
		b.g.metrics.SessionRestarted()
	}
	if again {
		b.memory.restore(l, b.log())
	}
	if release := b.open(l); release != nil {
		release(b.sent)
		if replaces {
			b.tellListChanged(l)
		}
	}
	return b.settle(l)
}

// greet tells the client of its session, the first one, and answers its initialize
// requests.
func (b *bridge) greet(l *link, openings []*jsonrpc.Message, first bool) {
	if l.result != nil && first {
		b.announce(l.result.Response(b.autoID()))
	}
	for _, m := range openings {
		b.c.AnswerNow(m.ID, l.result.Answer(m), "")
	}
}

// open opens the gate for a session, unless that is lost or replaced already, or
// the connection will not be ready any more. It returns what releases the
// messages that wait.
func (b *bridge) open(l *link) (release func(func(*jsonrpc.Message) bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current.Load() != l {
		return nil
	}
	release, _ = b.c.Open() // draining or closed: nil
	return release
}

// settle ends the starting goroutine, unless the session it started is lost
// already or no longer wanted.
func (b *bridge) settle(l *link) bool {
	if b.over() && b.current.CompareAndSwap(l, nil) { // closed while we took it into use
		b.leave(l, errGone)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over() { // from here on Closed has found it
		b.starting = false
		return true
	}
	if b.current.Load() == l && l.Err() == nil {
		b.starting = false
		return true
	}
	b.lostLocked(l, l.Err())
	return false
}

// lost is called when a session is over, before its requests are answered. It
// reports whether that was news.
func (b *bridge) lost(l *link, err error) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	news, wanted := b.lostLocked(l, err)
	if wanted && !b.starting {
		b.launchLocked()
	}
	return news
}

// lostLocked closes the gate after the loss of the current session. It reports
// whether the session was that, and whether another one is wanted.
func (b *bridge) lostLocked(l *link, err error) (news, wanted bool) {
	if b.over() || b.current.Load() != l {
		return false, false
	}
	// The gate first: who finds no session behind it must find it shut the next time.
	shut := b.c.State() == connstate.Initializing || b.c.Move(connstate.Initializing) == nil
	if !b.current.CompareAndSwap(l, nil) {
		return false, false // closed meanwhile
	}
	if !shut {
		return true, false // draining: there will be no other
	}
	if l.place == nil { // that of a shared session has been told, once for all
		b.log().Warn("session lost", "duration", time.Since(l.since), "err", err)
	}
	b.lossLocked(l, err)
	return true, true
}

// lossLocked decides whether the loss of a session counts as a failed start.
func (b *bridge) lossLocked(l *link, err error) {
	b.lostOne, b.lossErr = true, err
	if l.place != nil || l.proven() {
		b.attempts = 0
		b.backoff = nil
		return
	}
	b.pauseLocked()
}

// pauseLocked draws the pause before the next start and returns it.
func (b *bridge) pauseLocked() time.Duration {
	if b.backoff == nil {
		b.backoff = handshake.NewBackoff()
	}
	b.wait = b.backoff.Next()
	return b.wait
}

// discard closes a session that is not taken into use.
func (b *bridge) discard(l *link) {
	if l != nil {
		b.leave(l, errGone)
	}
}

// tellListChanged tells the client that a new session may have other lists.
func (b *bridge) tellListChanged(l *link) {
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if l.result != nil && l.result.Advertises(kind, "listChanged") {
			l.client.pass(jsonrpc.NewNotification("notifications/"+kind+"/list_changed", nil))
		}
	}
}
