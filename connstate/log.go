package connstate

import (
	"context"
	"log/slog"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// The life of a request in the log: "mcp POST start" when its POST arrives, and
// one of "mcp POST ok", "failed" and "slow" when it is answered, with the
// duration that the metric has. A request that is not taken has "failed" alone.

// logBegun logs a request that has come.
func (c *Connection) logBegun(id jsonrpc.ID, method string, err error) {
	if !c.debug() {
		return
	}
	attrs := []any{"connectionId", c.ShortID(), "requestId", short(string(id)), "method", short(method)}
	if err != nil {
		c.opts.Logger.Debug("mcp POST failed", append(attrs, "err", err)...)
		return
	}
	c.opts.Logger.Debug("mcp POST start", attrs...)
}

// logDone logs a request that is answered. The response is nil when the caller
// does not have it.
func (c *Connection) logDone(id jsonrpc.ID, r Request, errorType string, response []byte, took time.Duration) {
	slow := c.opts.SlowRequest > 0 && took >= c.opts.SlowRequest && !endedByClient(errorType)
	if !slow && !c.debug() {
		return
	}
	attrs := []any{"connectionId", c.ShortID(), "requestId", short(string(id)), "method", short(r.Method), "duration", took}
	if errorType != "" {
		attrs = append(attrs, "reason", short(errorType))
	}
	if response != nil && ownError(errorType) {
		attrs = append(attrs, "err", errorMessage(response))
	}
	switch {
	case slow:
		c.opts.Logger.Warn("mcp POST slow", attrs...)
	case errorType != "":
		c.opts.Logger.Debug("mcp POST failed", attrs...)
	default:
		c.opts.Logger.Debug("mcp POST ok", attrs...)
	}
}

// endedByClient reports whether it is the client's doing that a request has no
// answer: how long it took then says nothing of the server.
func endedByClient(errorType string) bool {
	return errorType == metrics.ErrorCanceled || errorType == metrics.ErrorClosed
}

// ownError reports whether an error is the gateway's. The words of a server's
// errors, which have a code, and of a tool's are not logged: they may hold params.
func ownError(errorType string) bool {
	switch errorType {
	case metrics.ErrorTimeout, metrics.ErrorSessionLost, metrics.ErrorCanceled, metrics.ErrorInitialization,
		metrics.ErrorClosed, metrics.ErrorBusy, metrics.ErrorDraining, metrics.ErrorInvalid:
		return true
	}
	return false
}

// errorMessage returns what an error response says.
func errorMessage(response []byte) string {
	raw, _ := jsonrpc.Member(response, "error", "message")
	message, _ := jsonrpc.Text(raw)
	return message[:min(512, len(message))]
}

// debug reports whether to build the attributes of debug lines at all.
func (c *Connection) debug() bool {
	return c.opts.Logger.Enabled(context.Background(), slog.LevelDebug)
}

// short bounds what a peer can put into a log line.
func short(s string) string { return s[:min(64, len(s))] }
