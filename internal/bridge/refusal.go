package bridge

import (
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// errLost reports that a message found no session twice.
var errLost = errors.New("the session with the server was lost")

// refuse answers a request that got no session because of err. It drops notifications.
func (l *sessionLife) refuse(r *connstate.Request, err error) {
	if r.ID == "" {
		l.opts.Metrics.Dropped(metrics.DroppedNotReady)
		return
	}
	r.NoteWait("gate", r.Started)
	e, errorType := l.refusal(err)
	r.Fail(e, errorType)
}

// refusal returns the error for a request that does not pass because of err, and its
// error type.
func (l *sessionLife) refusal(err error) (e *jsonrpc.Error, errorType string) {
	failure, failed := errors.AsType[*handshake.Failure](err)
	if errors.Is(err, connstate.ErrGateTimeout) {
		failure, failed = l.overdue(l.opts.Times().InitializationTimeout), true
	}
	reason, errorType, text := "closed", metrics.ErrorClosed, err.Error()
	switch {
	case failed:
		return l.visibleFailure(l.withRemainingPause(failure)).RPC(), metrics.ErrorInitialization
	case errors.Is(err, connstate.ErrTooManyPending):
		reason = "too_many_requests"
	case errors.Is(err, connstate.ErrDraining) && l.phase() == life.Dismissed:
		text = "the server has ended the session"
	case errors.Is(err, connstate.ErrDraining):
		reason, errorType = "draining", metrics.ErrorDraining
	case errors.Is(err, errLost):
		reason, errorType, text = "session_lost", metrics.ErrorSessionLost, l.lostText()
	case errors.Is(err, connstate.ErrGateFull):
		reason, errorType = "gate_full", metrics.ErrorBusy
	case errors.Is(err, connstate.ErrBusy):
		reason, errorType = "server_busy", metrics.ErrorBusy
	}
	return jsonrpc.ReasonError(text, reason, true), errorType
}

// whyRefused returns what a message learns that the phase refuses, with mu held.
func (l *sessionLife) whyRefused() error {
	switch l.state.Phase {
	case life.Closed:
		return connstate.ErrClosed
	case life.Finishing, life.Drained, life.Dismissed:
		return connstate.ErrDraining
	}
	l.opts.Metrics.GateRefused(metrics.GateFailed)
	return l.failure
}

// overdue returns what a request learns that has waited so long: the last failure, or that the start goes on.
func (l *sessionLife) overdue(waited time.Duration) *handshake.Failure {
	l.mu.Lock()
	failure, attempt, s := l.failure, l.failures.attempts, l.start
	l.mu.Unlock()
	switch {
	case failure != nil:
		return failure
	case s == nil:
		return l.lateFailure(attempt+1, waited, "")
	}
	return l.lateFailure(attempt, waited, s.lastWords())
}

// withRemainingPause returns failure. On a connection that has given up, it returns a
// copy with the time left until the next attempt is allowed.
func (l *sessionLife) withRemainingPause(failure *handshake.Failure) *handshake.Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Phase != life.GivenUp {
		return failure
	}
	reported := *failure
	reported.RetryAfter = max(0, time.Until(l.retry))
	return &reported
}
