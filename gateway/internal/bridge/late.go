package bridge

import (
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/metrics"
)

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
