package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// countStart tells metrics, health, log and the connection how a start went. The
// start of a shared session is told where that is, once for all.
func (b *bridge) countStart(a *attachment, err error, from string, attempt int, took time.Duration) {
	failure, failed := errors.AsType[*handshake.Failure](err)
	switch {
	case err == nil:
		b.countSession(a, from, attempt, took)
	case !failed: // the connection drains
		b.countAbandoned(from, took, false)
	case from == metrics.FromShared:
		b.c.SawFailure(string(failure.Phase), failure.Reason)
	default:
		b.count(failure, took)
		attrs := []any{"attempt", attempt, "phase", string(failure.Phase), "reason", failure.Reason, "duration", took}
		if failure.Refusal != nil && b.start.isOwn() {
			// What one client asks for says nothing about the server.
			b.log().Debug("session start failed", append(attrs, "err", failure)...)
			return
		}
		level, attrs := b.g.supplier.NoteFailure(failure, attempt >= b.g.opts.MaxHandshakeAttempts, attrs...)
		b.log().Log(context.Background(), level, "session start failed", attrs...)
	}
}

func (b *bridge) countSession(a *attachment, from string, attempt int, took time.Duration) {
	attrs := []any{"from", from, "attempt", attempt, "duration", took}
	if result := a.Result(); result != nil {
		b.c.SawServer(connstate.Server(result.Server()))
		attrs = append(attrs, a.ServerAttrs()...)
	}
	b.g.metrics.SessionTaken(from)
	if from == metrics.FromShared {
		b.log().Info("session taken", attrs...)
		return
	}
	b.g.metrics.HandshakeDone(metrics.HandshakeOK, "", "", took, b.c.ShortID())
	b.g.supplier.NoteStart()
	b.log().Info("session started", attrs...)
}

// countAbandoned counts a start that nobody wants any more. One that was late
// has been counted as that.
func (b *bridge) countAbandoned(from string, took time.Duration, late bool) {
	if from != metrics.FromShared && !late {
		b.g.metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", took, b.c.ShortID())
	}
}

// count counts an initialization that failed for this client, at the moment when
// it does.
func (b *bridge) count(failure *handshake.Failure, took time.Duration) {
	b.c.SawFailure(string(failure.Phase), failure.Reason)
	b.g.metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, took, b.c.ShortID())
}
