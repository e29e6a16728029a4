package bridge

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// This file tells of starts and failures: the client as far as it may see them, the log, the metrics, and the
// supplier.

// announce sends the response of the synthetic initialize, now or at the end of the
// announce delay.
func (c *client) announce(response []byte) {
	c.c.Announce(response, func(err error) {
		c.countFailure(&handshake.Failure{
			Phase: handshake.PhaseSending, Reason: metrics.ReasonSendFailed,
			Details: "the announcement could not be delivered", Err: err,
		}, time.Since(c.c.Opened()))
		c.limited().Warn("announcement not sent", "phase", string(handshake.PhaseSending), "err", err)
	})
}

// announceFailure announces a failure to a client that has been told nothing of its server.
func (c *client) announceFailure(f *handshake.Failure) {
	if c.opts.autoInitializes() {
		c.announce(c.visibleFailure(f).Response(c.autoID()))
	}
}

// reportFailure reports a failed attempt to metrics, log, supplier and connection. The
// supplier itself reports the start of a shared session, once. refusesClient says that the
// server has refused the params of this client, which says nothing about the server.
func (c *client) reportFailure(
	supplier *handshake.Supplier, attempt int, failure *handshake.Failure, took time.Duration, refusesClient bool,
) {
	c.countFailure(failure, took)
	if c.shares() {
		return
	}
	attrs := c.failureAttrs(attempt, failure, took)
	if refusesClient {
		c.log().Debug("session start failed", attrs...)
		return
	}
	supplier.NoteFailure(failure)
	c.limited().Warn("session start failed", attrs...)
}

// failureAttrs returns what the log says of a failed attempt.
func (c *client) failureAttrs(attempt int, failure *handshake.Failure, took time.Duration) []any {
	return []any{
		"attempt", attempt, "phase", string(failure.Phase), "reason", failure.Reason, "duration", took,
		"gaveUp", attempt >= c.opts.MaxHandshakeAttempts, "err", failure,
	}
}

// countFailure counts a failed initialization of this client. The supplier counts the
// start of a shared session, once.
func (c *client) countFailure(failure *handshake.Failure, took time.Duration) {
	c.c.SawFailure(string(failure.Phase), failure.Reason)
	if !c.shares() || failure.Phase == handshake.PhaseSending {
		c.opts.Metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, took)
	}
}

// lateFailure returns the failure of an attempt that has taken this long already. lastWords are those of its server, as
// the end of a sentence.
func (c *client) lateFailure(attempt int, waited time.Duration, lastWords string) *handshake.Failure {
	return &handshake.Failure{
		Phase: handshake.PhaseProcessing, Reason: metrics.ReasonTimeout,
		Details: c.opts.Server + " is still starting: it did not answer within " +
			waited.String() + c.opts.Supplier().Advice() + lastWords,
		Attempt: attempt, RetryAfter: time.Second,
	}
}

// visibleFailure returns a failure with the details that this client may see.
func (c *client) visibleFailure(f *handshake.Failure) *handshake.Failure {
	if c.seesDetails() {
		if f.IsLate() || c.opts.Remedy == nil {
			return f
		}
		remedied := *f
		remedied.Remedy = c.opts.Remedy(f)
		return &remedied
	}
	safe := f.Safe()
	safe.Details = strings.Replace(safe.Details, "the server", c.opts.Server, 1)
	return safe
}

// visibleLoss returns the error of a lost session with the details that this client may
// see. The error contains the exit status of the server and the end of its stderr.
func (c *client) visibleLoss(e *jsonrpc.Error) *jsonrpc.Error {
	if c.seesDetails() {
		return e
	}
	safe := *e
	safe.Message = c.lostText()
	return &safe
}

func (c *client) lostText() string { return "the session with " + c.opts.Server + " was lost" }

// startingEvery is the time between two reports of progress to a client that waits for a start.
const startingEvery = 3 * time.Second

// reportStarting tells the clients of requests that wait for a start that it goes on, as far as they
// ask for progress. n is the number of the report.
func (c *client) reportStarting(n int) {
	for _, waits := range c.c.Queued() {
		token := waits.Message.Token.Value
		if waits.ID == "" || token == nil || len(token) > jsonrpc.MaxIDBytes {
			continue
		}
		// Progress must grow, and the server's own may begin with 0: this grows towards it from below.
		progress := "-" + strconv.FormatFloat(1e-6/float64(n), 'g', 3, 64)
		params := `{"progressToken":` + string(token) + `,"progress":` + progress + `,"message":"starting the server"}`
		waits.SendProgress(jsonrpc.NewNotification(mcp.MethodProgress, json.RawMessage(params)), false)
	}
}
