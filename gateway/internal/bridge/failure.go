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

// crashFailure returns a failure when the server has started as often as it may and
// ended soon after the last start. For clients that is as if it did not start. A
// shared session has no such failure: a client that makes the server crash must not
// make the others give up.
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

// handleFailure handles an attempt that failed and reports whether it was the last
// one for now. After the last one it answers every request that waits with the
// failure; otherwise they wait for the next attempt.
func (s *start) handleFailure(err error) bool {
	failure, ok := errors.AsType[*handshake.Failure](err)
	if !ok { // the connection is draining or closed
		s.stop(err)
		return true
	}
	s.mu.Lock()
	if s.supersededLocked() {
		s.mu.Unlock()
		return false
	}
	last := s.attempts >= s.b.opts.MaxHandshakeAttempts
	told := *failure
	told.Attempt, told.RetryAfter, told.Refusal = s.attempts, s.drawPauseLocked(), nil
	s.failure = &told
	s.clearWakeLocked() // it was for the attempt that has failed
	announce := !s.served && s.b.opts.Params != nil
	refused := s.dropRefusedLocked(failure)
	var waiting []waitingInitialize
	var refusal error
	if last {
		s.moveLocked(gaveUp)
		s.retryAt = time.Now().Add(told.RetryAfter)
		waiting, refusal = s.takeWaitingLocked(), &told
	} else {
		s.moveLocked(pausing)
	}
	gated, moveErr := s.b.c.Fail(refusal) // under the lock: a client that asks again starts anew after it
	s.mu.Unlock()

	if announce {
		s.b.announce(s.b.tell(&told).Response(s.b.autoID()))
	}
	for _, w := range refused {
		s.b.c.AnswerNow(w.m.ID, failure.Refusal.WithID(w.m.ID), metrics.ErrorInitialization)
	}
	for _, w := range waiting {
		s.b.Refused(w.m, &told)
	}
	for _, m := range gated {
		s.b.Refused(m, &told)
	}
	if moveErr != nil {
		s.stop(moveErr)
	}
	return last || moveErr != nil
}

// dropRefusedLocked goes back to the synthetic params when the server has refused
// the client's own. It returns the request that had those, if it still waits: the
// server has answered it. The other requests wait for a session with the synthetic
// params.
func (s *start) dropRefusedLocked(failure *handshake.Failure) []waitingInitialize {
	if !s.own || failure.Refusal == nil {
		return nil
	}
	s.own, s.refused, s.params = false, true, s.b.opts.Params
	for i, w := range s.waiting {
		if w.m.ID == s.author {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			return []waitingInitialize{w}
		}
	}
	return nil
}

// revive starts run again on a connection that has given up, if the time for a retry
// has come: the server may be there again, and the client cannot know. It reports
// whether there is an attempt to wait for.
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

// remaining returns a failure for a request that asks now: on a connection that has
// given up, with the time that is left until another attempt may be made.
func (s *start) remaining(failure *handshake.Failure) *handshake.Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != gaveUp {
		return failure
	}
	told := *failure
	told.RetryAfter = max(0, time.Until(s.retryAt))
	return &told
}

// drawPauseLocked draws the pause before the next attempt and returns it.
func (s *start) drawPauseLocked() time.Duration {
	if s.backoff == nil {
		s.backoff = sessions.NewBackoff()
	}
	s.wait = s.backoff.Next()
	return s.wait
}

// lateRetry is when clients are told to ask again while a server still starts.
const lateRetry = time.Second

// reportLate counts the attempt that began then as late, and tells a client that has
// had no session. The attempt goes on: late is not failed.
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
		s.b.announce(s.b.tell(failure).Response(s.b.autoID()))
	}
}

// lateFailure returns what to tell a request that has waited too long for a session:
// how the last attempt failed, or that the current one takes long.
func (s *start) lateFailure(limit time.Duration) *handshake.Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil && (s.cancel == nil || time.Since(s.began) < limit) {
		return s.failure
	}
	return s.countLateLocked(limit)
}

// countLateLocked counts an attempt that takes long as a failure, once, and returns
// that failure.
func (s *start) countLateLocked(limit time.Duration) *handshake.Failure {
	failure := &handshake.Failure{
		Phase: handshake.PhaseProcessing, Reason: metrics.ReasonTimeout,
		Details: "the server is still starting: it did not answer within " + limit.String(),
		Attempt: s.attempts, RetryAfter: lateRetry,
	}
	switch {
	case s.told, s.cancel == nil: // counted, or no attempt is made
	case s.b.shares(): // the supplier counts the start, once for all
		s.told = true
		s.b.c.SawFailure(string(failure.Phase), failure.Reason)
	default:
		s.told = true
		s.b.countFailure(failure, limit)
	}
	return failure
}
