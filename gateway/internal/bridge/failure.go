package bridge

import (
	"errors"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// crashFailure returns a failure if the server ended soon after the last start that
// was allowed, else nil. For clients that is a failed start. A shared session never
// fails so: one client that crashes the server must not make the others give up.
func (s *start) crashFailure() *handshake.Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := s.unproven
	s.unproven = nil
	if why == nil || s.b.shares() || s.attempts < s.b.opts.MaxHandshakeAttempts {
		return nil
	}
	return &handshake.Failure{
		Phase: handshake.PhaseCreation, Reason: metrics.ReasonGaveUp,
		Details: "the server ends soon after each start", Err: why,
	}
}

// handleFailure handles a failed attempt and reports whether run must end. After the
// last attempt it answers all waiting requests with the failure; before, they wait
// for the next attempt.
func (s *start) handleFailure(err error) bool {
	failure, ok := errors.AsType[*handshake.Failure](err)
	if !ok { // the connection drains or is closed
		s.stop(err)
		return true
	}
	s.mu.Lock()
	if s.supersededLocked() {
		s.mu.Unlock()
		return false
	}
	last := s.attempts >= s.b.opts.MaxHandshakeAttempts
	reported := *failure
	reported.Attempt, reported.RetryAfter, reported.Refusal = s.attempts, s.drawPauseLocked(), nil
	s.failure = &reported
	s.clearWakeLocked() // the signal was for the failed attempt
	announce := !s.served && s.b.opts.Params != nil
	refused := s.dropRefusedLocked(failure)
	var waiting []waitingInitialize
	var refusal error
	if last {
		s.moveLocked(gaveUp)
		s.retryAt = time.Now().Add(reported.RetryAfter)
		waiting, refusal = s.takeWaitingLocked(), &reported
	} else {
		s.moveLocked(pausing)
	}
	gated, moveErr := s.b.c.Fail(refusal) // under the lock, so that revive comes after it
	s.mu.Unlock()

	if announce {
		s.b.announce(s.b.visibleFailure(&reported).Response(s.b.autoID()))
	}
	for _, w := range refused {
		w.r.Answer(failure.Refusal.WithID(w.r.ID), metrics.ErrorInitialization)
	}
	for _, w := range waiting {
		s.b.Refused(w.r, &reported)
	}
	for _, r := range gated {
		s.b.Refused(r, &reported)
	}
	if moveErr != nil {
		s.stop(moveErr)
	}
	return last || moveErr != nil
}

// dropRefusedLocked returns to the synthetic params if the server refused the
// client's own. It returns the initialize request with those params, if it still
// waits; the refusal is its answer. Other requests wait for a session with the
// synthetic params.
func (s *start) dropRefusedLocked(failure *handshake.Failure) []waitingInitialize {
	if !s.own || failure.Refusal == nil {
		return nil
	}
	s.own, s.refused, s.params = false, true, s.b.opts.Params
	for i, w := range s.waiting {
		if w.r.ID == s.author {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			return []waitingInitialize{w}
		}
	}
	return nil
}

// revive starts another attempt on a connection that has given up, if the time for a
// retry has come. It reports whether a request may wait for a session.
func (s *start) revive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state == over:
		return false
	case s.state != gaveUp:
		return true
	case time.Now().Before(s.retryAt):
		return false
	}
	s.startNowLocked()
	return true
}

// withRemainingPause returns failure. On a connection that has given up, it returns a
// copy with the time left until the next attempt is allowed.
func (s *start) withRemainingPause(failure *handshake.Failure) *handshake.Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != gaveUp {
		return failure
	}
	reported := *failure
	reported.RetryAfter = max(0, time.Until(s.retryAt))
	return &reported
}

// drawPauseLocked draws and returns the pause before the next attempt.
func (s *start) drawPauseLocked() time.Duration {
	if s.backoff == nil {
		s.backoff = sessions.NewBackoff()
	}
	s.wait = s.backoff.Next()
	return s.wait
}

// lateRetry is the retry time in errors about a server that still starts.
const lateRetry = time.Second

// reportLate counts the attempt that began at that time as late, and announces the
// failure to a client that has had no session. The attempt goes on: late is not
// failed.
func (s *start) reportLate(began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock() // held throughout, so that this cannot follow the result
	if s.began != began || s.cancel == nil || s.b.c.State() != connstate.Initializing {
		return
	}
	limit := s.b.opts.InitializationTimeout
	s.b.log().Info("session start takes long", "waited", limit)
	failure := s.countLateLocked(limit)
	if !s.served && s.b.opts.Params != nil {
		s.b.announce(s.b.visibleFailure(failure).Response(s.b.autoID()))
	}
}

// lateFailure returns the failure for a request that has waited for limit: that of
// the last attempt, or that the current one takes long.
func (s *start) lateFailure(limit time.Duration) *handshake.Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil && (s.cancel == nil || time.Since(s.began) < limit) {
		return s.failure
	}
	return s.countLateLocked(limit)
}

// countLateLocked returns the failure of an attempt that takes long, and counts it
// once.
func (s *start) countLateLocked(limit time.Duration) *handshake.Failure {
	failure := &handshake.Failure{
		Phase: handshake.PhaseProcessing, Reason: metrics.ReasonTimeout,
		Details: "the server is still starting: it did not answer within " + limit.String(),
		Attempt: s.attempts, RetryAfter: lateRetry,
	}
	switch {
	case s.lateCounted, s.cancel == nil: // counted already, or no attempt runs
	case s.b.shares(): // the supplier counts the shared start, once
		s.lateCounted = true
		s.b.c.SawFailure(string(failure.Phase), failure.Reason)
	default:
		s.lateCounted = true
		s.b.countFailure(failure, limit)
	}
	return failure
}
