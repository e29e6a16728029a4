package gateway

import (
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// lateRetry is when it may be worth to ask again for a server that still starts.
const lateRetry = time.Second

// beLate counts the start that began then as late, and tells the client so as
// long as it has had no session. The start goes on: late is not failed.
func (s *start) beLate(began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock() // with it, so that this cannot follow the result
	if s.began != began || s.cancel == nil || s.b.c.State() != connstate.Initializing {
		return
	}
	limit := s.b.g.opts.InitializationTimeout
	s.b.log().Info("session start takes long", "waited", limit)
	failure := s.lateLocked(limit)
	if !s.served && s.b.g.params != nil {
		s.b.announce(s.b.tell(failure).Response(s.b.autoID()))
	}
}

// whyLate is what a request is told that has waited for a start in vain: how the
// last one failed, or that the one that runs takes long.
func (s *start) whyLate(limit time.Duration) *handshake.Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil && (s.cancel == nil || time.Since(s.began) < limit) {
		return s.failure
	}
	return s.lateLocked(limit)
}

// lateLocked is what is told of a start that takes long, and counts it as a
// failure, once.
func (s *start) lateLocked(limit time.Duration) *handshake.Failure {
	failure := &handshake.Failure{
		Phase: handshake.PhaseProcessing, Reason: metrics.ReasonTimeout,
		Details: "the server is still starting: it did not answer within " + limit.String(),
		Attempt: s.attempts, RetryAfter: lateRetry,
	}
	switch {
	case s.told, s.cancel == nil: // counted, or no start runs
	case s.b.g.supplier.Shares(): // the start is counted where it is, once for all
		s.told = true
		s.b.c.SawFailure(string(failure.Phase), failure.Reason)
	default:
		s.told = true
		s.b.count(failure, limit)
	}
	return failure
}

// remaining is the failure of a connection that has given up as a request is
// told of it now: with the time that is left until another start may be made.
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
