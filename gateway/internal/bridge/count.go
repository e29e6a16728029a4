package bridge

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// reportStart tells metrics, log, supplier and the connection how an attempt went.
// The supplier reports the start of a shared session, once for all.
func (b *Bridge) reportStart(a *attachment, err error, from string, attempt int, took time.Duration) {
	failure, failed := errors.AsType[*handshake.Failure](err)
	switch {
	case err == nil:
		b.reportSession(a, from, attempt, took)
	case !failed: // the connection drains
		b.countAbandoned(from, took, false)
	case from == metrics.FromShared:
		b.c.SawFailure(string(failure.Phase), failure.Reason)
	default:
		b.countFailure(failure, took)
		attrs := []any{"attempt", attempt, "phase", string(failure.Phase), "reason", failure.Reason, "duration", took}
		if failure.Refusal != nil && b.start.isOwn() {
			// What one client asks for says nothing about the server.
			b.log().Debug("session start failed", append(attrs, "err", failure)...)
			return
		}
		level, attrs := b.opts.Supplier.NoteFailure(failure, attempt >= b.opts.MaxHandshakeAttempts, attrs...)
		b.log().Log(context.Background(), level, "session start failed", attrs...)
	}
}

func (b *Bridge) reportSession(a *attachment, from string, attempt int, took time.Duration) {
	attrs := []any{"from", from, "attempt", attempt, "duration", took}
	if result := a.Result(); result != nil {
		b.c.SawServer(connstate.Server(result.Server()))
		attrs = append(attrs, a.ServerAttrs()...)
	}
	b.opts.Metrics.SessionTaken(from)
	if from == metrics.FromShared {
		b.log().Info("session taken", attrs...)
		return
	}
	b.opts.Metrics.HandshakeDone(metrics.HandshakeOK, "", "", took, b.c.ShortID())
	b.opts.Supplier.NoteStart()
	b.log().Info("session started", attrs...)
}

// countAbandoned counts an attempt that nobody wants any more, unless it has been
// counted as late.
func (b *Bridge) countAbandoned(from string, took time.Duration, late bool) {
	if from != metrics.FromShared && !late {
		b.opts.Metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", took, b.c.ShortID())
	}
}

// countFailure counts an initialization that failed for this client, at the moment when
// it does.
func (b *Bridge) countFailure(failure *handshake.Failure, took time.Duration) {
	b.c.SawFailure(string(failure.Phase), failure.Reason)
	b.opts.Metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, took, b.c.ShortID())
}
