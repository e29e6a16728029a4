package handshake

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/mcp-sse/mcp-sse/connstate"
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
		b.countFailure(&Failure{
			Phase: PhaseSending, Reason: metrics.ReasonSendFailed,
			Details: "the announcement could not be delivered", Err: err,
		}, time.Since(b.c.Opened()))
		b.limited().Warn("announcement not sent", "phase", string(PhaseSending), "err", err)
	})
}

// endSpan ends the span of a start, which failed with errorType unless that is empty.
func (s *start) endSpan(errorType string) {
	s.span.SetAttributes(attribute.String("mcp_sse.session.source", s.result.from))
	connstate.EndSpan(s.span, errorType, "")
}

// announceFailure announces a failure to a client that has had no session.
func (r *run) announceFailure(f *Failure) {
	if r.follows == first && r.opts.Params != nil {
		r.announce(r.visibleFailure(f).Response(r.autoID()))
	}
}

// leastWait is how long a client must have waited to count as lost to the start: one that leaves
// sooner has only looked.
const leastWait = time.Second

// noteLostToStart reports a client that has left, after it had waited, before its server was ready.
// ready is when that was, after the client's coming; 0 if it never was.
func (r *run) noteLostToStart(waited, ready time.Duration) {
	if waited < leastWait || r.opts.Params == nil {
		return
	}
	r.opts.Metrics.ClientLostToStart()
	r.learnForNext()
	client := r.c.Snapshot().Program()
	if !r.opts.Losses.first(client, time.Now()) {
		return
	}
	attrs := []any{"client", client, "waited", waited.Round(time.Millisecond)}
	if ready > 0 {
		attrs = append(attrs, "ready", ready.Round(time.Millisecond))
	}
	switch opts := r.supplier.opts(); {
	case r.supplier.learnsAlone():
		attrs = append(attrs, "remedy", "none is needed: the next such client is answered from memory")
	case opts.Boots && opts.Warm == 0:
		attrs = append(attrs, "remedy", "keep one warm: warm 1")
	}
	r.log().Warn("client left before its server was ready", attrs...)
}

// OncePerHour notes what has happened in the last hour, for what must not happen again sooner. The zero value
// is ready for use; it is safe for concurrent use.
type OncePerHour struct {
	mu    sync.Mutex // guards noted
	noted map[string]time.Time
}

// maxNoted bounds what is noted, because clients name it.
const maxNoted = 256

// first reports whether something has not happened in the last hour, and notes that it does now. It reports
// false for everything while there is too much to note.
func (o *OncePerHour) first(what string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.noted, func(_ string, at time.Time) bool { return now.Sub(at) >= time.Hour })
	if _, noted := o.noted[what]; noted || len(o.noted) >= maxNoted {
		return false
	}
	if o.noted == nil {
		o.noted = make(map[string]time.Time)
	}
	o.noted[what] = now
	return true
}

// notifyListsChanged tells the client of the lists that have changed, as far as it was promised to be told.
func (b *Bridge) notifyListsChanged(promised *Result, changed func(kind string) bool) {
	for _, kind := range remember.Kinds() {
		if changed(kind) && promised.Advertises(kind, "listChanged") {
			b.pass("", jsonrpc.NewNotification("notifications/"+kind+"/list_changed", nil))
		}
	}
}

// reportFailure reports a failed attempt to metrics, log, supplier and connection. The
// supplier itself reports the start of a shared session, once. refusesClient says that the
// server has refused the params of this client, which says nothing about the server.
func (r *run) reportFailure(failure *Failure, took time.Duration, refusesClient bool) {
	r.countFailure(failure, took)
	if r.shares() {
		return
	}
	attrs := r.failureAttrs(failure, took)
	if refusesClient {
		r.log().Debug("session start failed", attrs...)
		return
	}
	r.supplier.NoteFailure(failure)
	r.limited().Warn("session start failed", attrs...)
}

// failureAttrs returns what the log says of a failed attempt.
func (r *run) failureAttrs(failure *Failure, took time.Duration) []any {
	return []any{
		"attempt", r.attempts, "phase", string(failure.Phase), "reason", failure.Reason, "duration", took,
		"gaveUp", r.attempts >= r.opts.MaxHandshakeAttempts, "err", failure,
	}
}

// reportSession reports an attempt that worked.
func (r *run) reportSession(a *attachment, from string, took time.Duration) {
	attrs := []any{"from", from, "attempt", r.attempts, "duration", took}
	if result := a.session.Result(); result != nil {
		r.c.SawServer(connstate.Server(result.Server()))
		attrs = append(attrs, a.session.ServerAttrs()...)
	}
	if from == FromShared {
		r.log().Info("session taken", attrs...)
		return
	}
	r.opts.Metrics.HandshakeDone(metrics.HandshakeOK, "", "", took)
	r.supplier.NoteStart()
	r.log().Info("session started", attrs...)
}

// countFailure counts a failed initialization of this client. The supplier counts the
// start of a shared session, once.
func (b *Bridge) countFailure(failure *Failure, took time.Duration) {
	b.c.SawFailure(string(failure.Phase), failure.Reason)
	if !b.shares() || failure.Phase == PhaseSending {
		b.opts.Metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, took)
	}
}

// lateFailure returns the failure of an attempt that takes long.
func (b *Bridge) lateFailure(attempt int) *Failure {
	words := ""
	if s := b.booting.Load(); s != nil {
		words = s.lastWords()
	}
	return &Failure{
		Phase: PhaseProcessing, Reason: metrics.ReasonTimeout,
		Details: b.opts.Server + " is still starting: it did not answer within " + b.opts.Times().InitializationTimeout.String() + b.opts.Supplier().Advice() + words,
		Attempt: attempt, RetryAfter: time.Second,
	}
}

// overdue returns what a request learns that has waited too long. Of an attempt that takes
// long it says what is known now.
func (b *Bridge) overdue() *Failure {
	failure := b.failure.Load()
	if failure.isLate() {
		return b.lateFailure(failure.Attempt)
	}
	return failure
}

// withRemainingPause returns failure. On a connection that has given up, it returns a
// copy with the time left until the next attempt is allowed.
func (b *Bridge) withRemainingPause(failure *Failure) *Failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.retryAt.IsZero() {
		return failure
	}
	reported := *failure
	reported.RetryAfter = max(0, time.Until(b.retryAt))
	return &reported
}

// visibleFailure returns a failure with the details that this client may see.
func (b *Bridge) visibleFailure(f *Failure) *Failure {
	if b.opts.Detailed(b.c.Client()) {
		if f.isLate() || b.opts.Remedy == nil {
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
func (r *run) reportStarting(n int) {
	for _, waits := range r.c.Waiting() {
		token := waits.Message.Token.Value
		if waits.ID == "" || token == nil || len(token) > jsonrpc.MaxIDBytes {
			continue
		}
		// Progress must grow, and the server's own may begin with 0: this grows towards it from below.
		params := `{"progressToken":` + string(token) + `,"progress":-` + strconv.FormatFloat(1e-6/float64(n), 'g', 3, 64) + `,"message":"starting the server"}`
		waits.SendProgress(jsonrpc.NewNotification(mcp.MethodProgress, json.RawMessage(params)), false)
	}
}
