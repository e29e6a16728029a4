package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// countStart tells metrics, health, log and the connection how a start went. The
// start of a shared session is told where that is, once for all.
func (b *bridge) countStart(l *link, err error, from string, attempt int, took time.Duration) {
	failure, failed := errors.AsType[*handshake.Failure](err)
	switch {
	case err == nil:
		b.countSession(l, from, attempt, took)
	case !failed: // the connection drains
		b.countAbandoned(from, took, false)
	case from == fromShared:
		b.c.SawFailure(string(failure.Phase), failure.Reason)
	default:
		b.count(failure, took)
		attrs := []any{"attempt", attempt, "phase", string(failure.Phase), "reason", failure.Reason, "duration", took}
		if failure.Refusal != nil && b.start.isOwn() {
			// What one client asks for says nothing about the server.
			b.log().Debug("session start failed", append(attrs, "err", failure)...)
			return
		}
		b.g.health.started(err)
		level, attrs := b.g.startLog.failed(failure, attempt >= b.g.opts.MaxHandshakeAttempts, attrs...)
		b.log().Log(context.Background(), level, "session start failed", attrs...)
	}
}

func (b *bridge) countSession(l *link, from string, attempt int, took time.Duration) {
	attrs := []any{"from", from, "attempt", attempt, "duration", took}
	if l.result != nil {
		server := b.g.sawServer(l.result)
		b.c.SawServer(server)
		attrs = append(attrs, serverAttrs(server)...)
	}
	b.g.metrics.SessionTaken(from)
	if from == fromShared {
		b.log().Info("session taken", attrs...)
		return
	}
	b.g.metrics.HandshakeDone(metrics.HandshakeOK, "", "", took, b.c.ShortID())
	b.g.health.started(nil)
	b.g.startLog.worked()
	b.log().Info("session started", attrs...)
}

// endedSoon is the failure of a server that ended before it was of use. It counts
// as a start that failed.
func endedSoon(err error) *handshake.Failure {
	return &handshake.Failure{
		Phase: handshake.PhaseCreation, Reason: metrics.ReasonStartFailed, Details: "the server ended soon after its start", Err: err,
	}
}

// countAbandoned counts a start that nobody wants any more. One that was late
// has been counted as that.
func (b *bridge) countAbandoned(from string, took time.Duration, late bool) {
	if from != fromShared && !late {
		b.g.metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", took, b.c.ShortID())
	}
}

// count counts an initialization that failed for this client, at the moment when
// it does.
func (b *bridge) count(failure *handshake.Failure, took time.Duration) {
	b.c.SawFailure(string(failure.Phase), failure.Reason)
	b.g.metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, took, b.c.ShortID())
}

// countShared tells how the start of a shared session went, once for all the
// connections that wait for it.
func (g *Gateway) countShared(s *session, err error, took time.Duration) {
	failure, failed := errors.AsType[*handshake.Failure](err)
	switch {
	case err == nil:
		g.metrics.HandshakeDone(metrics.HandshakeOK, "", "", took, "")
		g.health.started(nil)
		g.startLog.worked()
		g.log.Info("shared session started", append(serverAttrs(g.sawServer(s.result)), "duration", took)...)
	case abandoned(err) || !failed:
		g.metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", took, "")
	default:
		g.metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, took, "")
		g.health.started(err)
		level, attrs := g.startLog.failed(failure, false, "phase", string(failure.Phase), "reason", failure.Reason, "duration", took)
		g.log.Log(context.Background(), level, "shared session start failed", attrs...)
	}
}

// sawServer returns what the server says of itself, and warns of a protocol
// version that clients may not know, once.
func (g *Gateway) sawServer(r *handshake.Result) connstate.Server {
	name, version := r.Server()
	s := connstate.Server{Name: name, Version: version, ProtocolVersion: r.Version[:min(64, len(r.Version))]}
	if last := g.oddVersion.Load(); !mcp.HasInitialize(r.Version) && (last == nil || *last != s.ProtocolVersion) {
		g.oddVersion.Store(&s.ProtocolVersion)
		g.log.Warn("server speaks an unknown protocol version", serverAttrs(s)...)
	}
	return s
}

func serverAttrs(s connstate.Server) []any {
	return []any{"serverName", s.Name, "serverVersion", s.Version, "protocolVersion", s.ProtocolVersion}
}
