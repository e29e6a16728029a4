package bridge

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/remember"
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

// endSpan ends the span of a start, which failed with errorType unless that is empty.
func (s *start) endSpan(errorType string) {
	s.span.SetAttributes(attribute.String("mcp_sse.session.source", s.result.from))
	connstate.EndSpan(s.span, errorType, "")
}

// announceFailure announces a failure to a client that has been told nothing of its server.
func (b *Bridge) announceFailure(f *handshake.Failure) {
	if b.opts.Params != nil {
		b.announce(b.visibleFailure(f).Response(b.autoID()))
	}
}

// leastWait is how long a client must have waited to count as lost to the start: one that leaves
// sooner has only looked.
const leastWait = time.Second

// noteLostToStart reports a client that has left, after it had waited, before its server was ready.
// ready is when that was, after the client's coming; 0 if it never was.
func (s *start) noteLostToStart(waited, ready time.Duration) {
	if waited < leastWait || s.opts.Params == nil {
		return
	}
	s.opts.Metrics.ClientLostToStart()
	s.learnForNext()
	client := s.c.Snapshot().Program()
	if !s.opts.Losses.First(client, time.Now()) {
		return
	}
	attrs := []any{"client", client, "waited", waited.Round(time.Millisecond)}
	if ready > 0 {
		attrs = append(attrs, "ready", ready.Round(time.Millisecond))
	}
	switch opts := s.supplier.Options(); {
	case s.supplier.LearnsAlone():
		attrs = append(attrs, "remedy", "none is needed: the next such client is answered from memory")
	case opts.Boots && opts.Warm == 0:
		attrs = append(attrs, "remedy", "keep one warm: warm 1")
	}
	s.log().Warn("client left before its server was ready", attrs...)
}

// learnForNext has the server say what the next client like this one, which has left before the server was
// ready, gets from memory.
func (s *start) learnForNext() {
	memory, params := s.supplier.Options().Memory, s.life.nextParams()
	client, plain := remember.ClientOf(params, s.who())
	if s.supplier.LearnsAlone() && plain && memory.Answers(client) == nil {
		s.supplier.LearnInBackground(params, s.who())
	}
}

// reportFailure reports a failed attempt to metrics, log, supplier and connection. The
// supplier itself reports the start of a shared session, once. refusesClient says that the
// server has refused the params of this client, which says nothing about the server.
func (b *Bridge) reportFailure(supplier *handshake.Supplier, attempt int, failure *handshake.Failure, took time.Duration, refusesClient bool) {
	b.countFailure(failure, took)
	if b.shares() {
		return
	}
	attrs := b.failureAttrs(attempt, failure, took)
	if refusesClient {
		b.log().Debug("session start failed", attrs...)
		return
	}
	supplier.NoteFailure(failure)
	b.limited().Warn("session start failed", attrs...)
}

// failureAttrs returns what the log says of a failed attempt.
func (b *Bridge) failureAttrs(attempt int, failure *handshake.Failure, took time.Duration) []any {
	return []any{
		"attempt", attempt, "phase", string(failure.Phase), "reason", failure.Reason, "duration", took,
		"gaveUp", attempt >= b.opts.MaxHandshakeAttempts, "err", failure,
	}
}

// reportSession reports a start that worked.
func (s *start) reportSession(took time.Duration) {
	a, from := s.result.attachment, s.result.from
	attrs := []any{"from", from, "attempt", s.attempt, "duration", took}
	if result := a.session.Result(); result != nil {
		s.c.SawServer(connstate.Server(result.Server()))
		attrs = append(attrs, a.session.ServerAttrs()...)
	}
	if from == handshake.FromShared {
		s.log().Info("session taken", attrs...)
		return
	}
	s.opts.Metrics.HandshakeDone(metrics.HandshakeOK, "", "", took)
	s.supplier.NoteStart()
	s.log().Info("session started", attrs...)
}

// countFailure counts a failed initialization of this client. The supplier counts the
// start of a shared session, once.
func (b *Bridge) countFailure(failure *handshake.Failure, took time.Duration) {
	b.c.SawFailure(string(failure.Phase), failure.Reason)
	if !b.shares() || failure.Phase == handshake.PhaseSending {
		b.opts.Metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, took)
	}
}

// lateFailure returns the failure of an attempt that takes long, the start s if that is not nil.
func (b *Bridge) lateFailure(attempt int, s *start) *handshake.Failure {
	words := ""
	if s != nil {
		if booting := s.booting.Load(); booting != nil {
			words = booting.LastWords()
		}
	}
	return &handshake.Failure{
		Phase: handshake.PhaseProcessing, Reason: metrics.ReasonTimeout,
		Details: b.opts.Server + " is still starting: it did not answer within " + b.opts.Times().InitializationTimeout.String() + b.opts.Supplier().Advice() + words,
		Attempt: attempt, RetryAfter: time.Second,
	}
}

// startIsLate announces to a client that has been told nothing that its start takes long. The start goes on:
// late is not failed.
func (l *sessionLife) startIsLate(s *start) {
	l.log().Info("session start takes long", "waited", l.opts.Times().InitializationTimeout)
	l.mu.Lock()
	defer l.unlock()
	if l.start != s {
		return
	}
	l.failure = nil
	if l.state.Told == life.ToldNothing {
		l.later(func() { l.announceFailure(l.lateFailure(s.attempt, s)) })
	}
}

// overdue returns what a request learns that has waited too long: the last failure, or that the start goes on.
func (l *sessionLife) overdue() *handshake.Failure {
	l.mu.Lock()
	failure, attempt, s := l.failure, l.failures.attempts, l.start
	l.mu.Unlock()
	switch {
	case failure != nil:
		return failure
	case s == nil:
		attempt++
	}
	return l.lateFailure(attempt, s)
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

// nextParams is params without mu held, and ownParams returns those of the client.
func (l *sessionLife) nextParams() json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.params()
}

func (l *sessionLife) ownParams() json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own
}

// visibleFailure returns a failure with the details that this client may see.
func (b *Bridge) visibleFailure(f *handshake.Failure) *handshake.Failure {
	if b.opts.Detailed(b.c.Client()) {
		if f.IsLate() || b.opts.Remedy == nil {
			return f
		}
		remedied := *f
		remedied.Remedy = b.opts.Remedy(f)
		return &remedied
	}
	safe := f.Safe()
	safe.Details = strings.Replace(safe.Details, "the server", b.opts.Server, 1)
	return safe
}

// visibleLoss returns the error of a lost session with the details that this client may
// see. The error contains the exit status of the server and the end of its stderr.
func (b *Bridge) visibleLoss(e *jsonrpc.Error) *jsonrpc.Error {
	if b.opts.Detailed(b.c.Client()) {
		return e
	}
	safe := *e
	safe.Message = b.lostText()
	return &safe
}

func (b *Bridge) lostText() string { return "the session with " + b.opts.Server + " was lost" }

// startingEvery is the time between two reports of progress to a client that waits for a start.
const startingEvery = 3 * time.Second

// reportStarting tells the clients of requests that wait for a start that it goes on, as far as they
// ask for progress. n is the number of the report.
func (b *Bridge) reportStarting(n int) {
	for _, waits := range b.c.Waiting() {
		token := waits.Message.Token.Value
		if waits.ID == "" || token == nil || len(token) > jsonrpc.MaxIDBytes {
			continue
		}
		// Progress must grow, and the server's own may begin with 0: this grows towards it from below.
		params := `{"progressToken":` + string(token) + `,"progress":-` + strconv.FormatFloat(1e-6/float64(n), 'g', 3, 64) + `,"message":"starting the server"}`
		waits.SendProgress(jsonrpc.NewNotification(mcp.MethodProgress, json.RawMessage(params)), false)
	}
}
