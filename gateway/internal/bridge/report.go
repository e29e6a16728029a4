package bridge

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// autoID returns the id of the synthetic initialize, as the client sees it.
func (b *Bridge) autoID() jsonrpc.ID {
	return jsonrpc.ID(strconv.Quote("auto-initialize-" + b.c.ID()))
}

// announce sends the response of the synthetic initialize, now or at the end of the
// announce delay.
func (b *Bridge) announce(response []byte) {
	b.c.Announce(response, func(err error) {
		b.countFailure(&handshake.Failure{
			Phase: handshake.PhaseSending, Reason: metrics.ReasonSendFailed,
			Details: "the announcement could not be delivered", Err: err,
		}, time.Since(b.c.Opened()))
		b.limited().Warn("announcement not sent", "phase", string(handshake.PhaseSending), "err", err)
	})
}

// greet announces the first session, and answers the waiting initialize requests.
func (b *Bridge) greet(a *attachment, waiting []waitingInitialize, first bool) {
	if a.Result() == nil {
		return
	}
	if first {
		b.announce(a.Result().Response(b.autoID()))
	}
	for _, o := range waiting {
		o.r.Answer(a.Result().Answer(o.r.Message), "")
	}
}

// notifyListsChanged tells the client that its lists may have changed with the new
// session.
func (b *Bridge) notifyListsChanged(a *attachment) {
	if a.Result() == nil {
		return
	}
	for _, method := range []string{mcp.MethodToolsChanged, mcp.MethodPromptsChanged, mcp.MethodResourcesChanged} {
		if kind, _ := mcp.ChangedList(method); a.Result().Advertises(kind, "listChanged") {
			a.client.pass("", jsonrpc.NewNotification(method, nil))
		}
	}
}

// reportStart reports the result of an attempt to metrics, log, supplier and
// connection. The supplier itself reports the start of a shared session, once.
func (b *Bridge) reportStart(a *attachment, err error, from string, attempt int, took time.Duration) {
	failure, failed := errors.AsType[*handshake.Failure](err)
	switch {
	case err == nil:
		b.reportSession(a, from, attempt, took)
	case !failed: // the connection drains
		b.countAbandoned(from, took, false)
	case from == sessions.FromShared:
		b.c.SawFailure(string(failure.Phase), failure.Reason)
	default:
		b.countFailure(failure, took)
		attrs := []any{"attempt", attempt, "phase", string(failure.Phase), "reason", failure.Reason, "duration", took}
		if failure.Refusal != nil && b.start.isOwn() {
			// The params of one client may be the cause, so this says nothing about
			// the server.
			b.log().Debug("session start failed", append(attrs, "err", failure)...)
			return
		}
		level, attrs := b.opts.Supplier.NoteFailure(failure, attempt >= b.opts.MaxHandshakeAttempts, attrs...)
		b.limited().Log(context.Background(), level, "session start failed", attrs...)
	}
}

func (b *Bridge) reportSession(a *attachment, from string, attempt int, took time.Duration) {
	attrs := []any{"from", from, "attempt", attempt, "duration", took}
	if result := a.Result(); result != nil {
		b.c.SawServer(connstate.Server(result.Server()))
		attrs = append(attrs, a.ServerAttrs()...)
	}
	if from == sessions.FromShared {
		b.log().Info("session taken", attrs...)
		return
	}
	b.opts.Metrics.HandshakeDone(metrics.HandshakeOK, "", "", took)
	b.opts.Supplier.NoteStart()
	b.log().Info("session started", attrs...)
}

// countAbandoned counts a cancelled attempt, unless it counted as late.
func (b *Bridge) countAbandoned(from string, took time.Duration, late bool) {
	if from != sessions.FromShared && !late {
		b.opts.Metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", took)
	}
}

// countFailure counts a failed initialization of this client.
func (b *Bridge) countFailure(failure *handshake.Failure, took time.Duration) {
	b.c.SawFailure(string(failure.Phase), failure.Reason)
	b.opts.Metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, took)
}

// visibleFailure returns a failure with the details that this client may see.
func (b *Bridge) visibleFailure(f *handshake.Failure) *handshake.Failure {
	if b.opts.Detailed(b.c.Client()) {
		return f
	}
	return f.Safe()
}

// visibleLoss returns the error of a lost session with the details that this client may
// see. The error contains the exit status of the server and the end of its stderr.
func (b *Bridge) visibleLoss(e *jsonrpc.Error) *jsonrpc.Error {
	if b.opts.Detailed(b.c.Client()) {
		return e
	}
	safe := *e
	safe.Message = "the session with the server was lost"
	return &safe
}
