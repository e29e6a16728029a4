package gateway

import (
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// crashes returns a failure when the server has started as often as it may and
// ended soon after the last start. For clients that is as if it did not start.
// It does not hold for a shared session: one client that makes the server crash
// must not have the others give up.
func (s *start) crashes() *handshake.Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := s.unproven
	s.unproven = nil
	if why == nil || s.b.g.supplier.Shares() || s.attempts < s.b.g.opts.MaxHandshakeAttempts {
		return nil
	}
	return &handshake.Failure{
		Phase: handshake.PhaseCreation, Reason: metrics.ReasonGaveUp,
		Details: "the server ends soon after each start", Err: why,
	}
}

// failed handles a failed start and reports whether it was the last one for now.
// After the last one, failed answers every request that waits with the failure;
// otherwise they go on waiting for the next start.
func (s *start) failed(err error) bool {
	failure, ok := errors.AsType[*handshake.Failure](err)
	if !ok { // the connection is draining or closed
		s.stop(err)
		return true
	}
	s.mu.Lock()
	if s.supersededLocked() { // after all
		s.mu.Unlock()
		return false
	}
	last := s.attempts >= s.b.g.opts.MaxHandshakeAttempts
	told := *failure
	told.Attempt, told.RetryAfter = s.attempts, s.drawLocked()
	s.failure = &told
	s.drainWakeLocked() // it was for the start that has failed
	announce := !s.served && s.b.g.params != nil
	var waiting []waitingInitialize
	var refusal error
	if last {
		s.moveLocked(gaveUp)
		s.retryAt = time.Now().Add(told.RetryAfter)
		waiting, refusal = s.takeWaitingLocked(), &told
	} else {
		s.moveLocked(pausing)
	}
	told.Refusal = nil // not kept
	own := s.own && failure.Refusal != nil
	author := s.author
	if own {
		// The server has answered the client's own initialize. What else waits is
		// for a session with the synthetic one.
		waiting = append(waiting, s.takeRefusedLocked()...)
		s.own, s.refused, s.params = false, true, s.b.g.params
	}
	gated, moveErr := s.b.c.Fail(refusal) // under the lock: a client that asks again starts anew after it
	s.mu.Unlock()

	if announce {
		s.b.announce(s.b.tell(&told).Response(s.b.autoID()))
	}
	for _, o := range waiting {
		if own && o.m.ID == author {
			s.b.c.AnswerNow(o.m.ID, failure.Refusal.WithID(o.m.ID), metrics.ErrorInitialization)
			continue
		}
		s.b.Refused(o.m, &told)
	}
	for _, m := range gated {
		s.b.Refused(m, &told)
	}
	if moveErr != nil {
		s.stop(moveErr)
	}
	return last || moveErr != nil
}

// revive has a start made on a connection that has given up, if the time for a
// retry has come: the server may be there again, and the client cannot know. It
// reports whether there is a start to wait for.
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
	s.wakeLocked()
	return true
}
