package connstate

import (
	"context"
	"log/slog"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// The life of a request in the log: "mcp POST start" when its POST arrives, and one
// of "mcp POST ok", "failed" and "slow" when it is answered, with the duration that
// the metric has. A refused request has only "failed".

// logStart logs a request that has come, or why it is refused.
func (c *Connection) logStart(id jsonrpc.ID, method string, err error) {
	if !c.debugEnabled() {
		return
	}
	attrs := c.logAttrs(id, method)
	if err != nil {
		c.opts.Logger.Debug("mcp POST failed", append(attrs, "err", err)...)
		return
	}
	c.opts.Logger.Debug("mcp POST start", attrs...)
}

// logDone logs an answered request. response is nil if the caller does not have it.
func (c *Connection) logDone(id jsonrpc.ID, r Request, errorType string, response []byte, took time.Duration) {
	slow := c.opts.SlowRequest > 0 && took >= c.opts.SlowRequest && !endedByClient(errorType)
	if !slow && !c.debugEnabled() {
		return
	}
	attrs := append(c.logAttrs(id, r.Method), "duration", took)
	if errorType != "" {
		attrs = append(attrs, "reason", short(errorType))
	}
	if response != nil && ownError(errorType) {
		attrs = append(attrs, "err", errorMessage(response))
	}
	switch {
	case slow:
		c.opts.limited.Warn("mcp POST slow", attrs...)
	case errorType != "":
		c.opts.Logger.Debug("mcp POST failed", attrs...)
	default:
		c.opts.Logger.Debug("mcp POST ok", attrs...)
	}
}

// logAttrs returns the attributes of a line about a request.
func (c *Connection) logAttrs(id jsonrpc.ID, method string) []any {
	attrs := make([]any, 0, 14)
	attrs = append(attrs, "connectionId", c.ShortID())
	if c.client.Transport != "" {
		attrs = append(attrs, "transport", c.client.Transport)
	}
	return append(attrs, "requestId", short(string(id)), "method", short(method))
}

// endedByClient reports whether the client ended a request without an answer. Its
// duration then says nothing about the server.
func endedByClient(errorType string) bool {
	return errorType == metrics.ErrorCanceled || errorType == metrics.ErrorClosed
}

// ownError reports whether an error is the gateway's. The messages of a server's
// errors, which have a code, and of a tool's are not logged: they may hold params.
func ownError(errorType string) bool {
	switch errorType {
	case metrics.ErrorTimeout, metrics.ErrorSessionLost, metrics.ErrorCanceled, metrics.ErrorInitialization,
		metrics.ErrorClosed, metrics.ErrorBusy, metrics.ErrorDraining, metrics.ErrorInvalid:
		return true
	}
	return false
}

// errorMessage returns the message of an error response, cut to 512 bytes.
func errorMessage(response []byte) string {
	raw, _ := jsonrpc.Member(response, "error", "message")
	message, _ := jsonrpc.Text(raw)
	return message[:min(512, len(message))]
}

// debugEnabled reports whether to build the attributes of debug lines.
func (c *Connection) debugEnabled() bool {
	return c.opts.Logger.Enabled(context.Background(), slog.LevelDebug)
}

// short cuts a peer's text for the log to 64 bytes.
func short(s string) string { return s[:min(64, len(s))] }
