package connstate

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// maxAudited bounds the name of a tool in the audit log, in bytes.
const maxAudited = 256

// auditOf returns the audit log of a tool call, with what it tells before the answer; nil if
// there is no such log, or the message calls no tool. The principal is whole: two that begin alike
// are two.
func (c *Connection) auditOf(m *jsonrpc.Message) *slog.Logger {
	if c.opts.Audit == nil || m.Method != mcp.MethodCallTool {
		return nil
	}
	place := m.Param("name")
	name, _ := place.Text()
	if place.Ambiguous { // the server may run another tool
		name = "(ambiguous)"
	}
	return c.opts.Audit.With("principal", c.client.Principal, "tool", clip(name, maxAudited), "requestBytes", len(m.Raw()))
}

// audit writes the line of a tool call. errorType is that of the answer, which has this many
// bytes.
func (r *Request) audit(errorType string, took time.Duration, answerBytes int) {
	if r.auditLog != nil {
		r.auditLog.LogAttrs(context.Background(), slog.LevelInfo, "tool call", slog.String("outcome", cmp.Or(short(errorType), "ok")),
			slog.Float64("seconds", took.Round(time.Microsecond).Seconds()), slog.Int("answerBytes", answerBytes))
	}
}

// AuditNotification writes the line of a tool call without an id, which no answer follows: the
// server may run the tool. It does nothing for other notifications.
func (c *Connection) AuditNotification(m *jsonrpc.Message) {
	(&Request{auditLog: c.auditOf(m)}).audit("notification", 0, 0)
}

// clip cuts a peer's text to most bytes, and makes it valid UTF-8.
func clip(s string, most int) string { return strings.ToValidUTF8(s[:min(most, len(s))], "\uFFFD") }
