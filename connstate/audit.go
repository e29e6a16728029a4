package connstate

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// maxAudited bounds a name in the audit log, in bytes.
const maxAudited = 256

// toolCall is what the audit log tells of a tool call before its answer.
type toolCall struct {
	tool  string
	bytes int
}

// newToolCall returns what the audit log tells of a request; nil if there is no such log, or
// the request calls no tool.
func (c *Connection) newToolCall(m *jsonrpc.Message) *toolCall {
	if c.opts.Audit == nil || m.Method != mcp.MethodCallTool {
		return nil
	}
	place := m.Param("name")
	name, _ := place.Text()
	if place.Ambiguous { // the server may run another tool
		name = "(ambiguous)"
	}
	return &toolCall{clip(name), len(m.Raw())}
}

// audit writes the line of a tool call. errorType is that of the answer, which has this many
// bytes.
func (r *Request) audit(errorType string, took time.Duration, answerBytes int) {
	if r.call == nil {
		return
	}
	outcome := "ok"
	if errorType != "" {
		outcome = short(errorType)
	}
	r.c.opts.Audit.LogAttrs(context.Background(), slog.LevelInfo, "tool call",
		slog.String("principal", clip(r.c.client.Principal)), slog.String("tool", r.call.tool), slog.String("outcome", outcome),
		slog.Float64("seconds", took.Round(time.Microsecond).Seconds()),
		slog.Int("requestBytes", r.call.bytes), slog.Int("answerBytes", answerBytes))
}

// clip cuts a name for the audit log.
func clip(s string) string { return strings.ToValidUTF8(s[:min(maxAudited, len(s))], "\uFFFD") }
