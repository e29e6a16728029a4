package connstate

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// maxAudited bounds the name of a tool in the audit log, in bytes.
const maxAudited = 256

// auditLine is the line of a tool call, before its answer.
type auditLine struct {
	log     *slog.Logger   // with what is known
	view    string         // the name of the server, if it is a view
	request *asker.Request // of a view, which notes there where the call leads; nil: the server is no view
}

// auditOf returns the line of a tool call, with what it tells before the answer; nil if there is no audit log, or the
// message calls no tool. A view gets the message with a context in which it notes where the call leads. The principal
// is whole: two that begin alike are two.
func (c *Connection) auditOf(m *jsonrpc.Message) *auditLine {
	if c.opts.Audit == nil || m.Method != mcp.MethodCallTool {
		return nil
	}
	place := m.Param("name")
	name, _ := place.Text()
	if place.Ambiguous { // CheckClear refuses it, where it is asked
		name = "(ambiguous)"
	}
	program, address := c.caller()
	log := c.opts.Audit.With("principal", c.client.Principal, "client", program, "address", address)
	if called := c.opts.Called; called != nil && !place.Ambiguous {
		if tool, ok := called(m); ok {
			name, log = tool, log.With("by", validText(name, maxAudited))
		}
	}
	a := &auditLine{log: log.With("tool", validText(name, maxAudited), "requestBytes", len(m.Raw()))}
	if c.isOfView() {
		a.view = c.opts.Server
		m.Context, a.request = asker.WithRequest(m.Context, "")
	}
	return a
}

// isOfView reports whether the server of the connection is a view.
func (c *Connection) isOfView() bool { return c.opts.IsView != nil && c.opts.IsView() }

// caller returns which program the client is, and its address, which is empty if it has none.
func (c *Connection) caller() (program, address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.Program(), c.known.Remote
}

// CheckClear returns an error if parsers may read a client's message in two ways, so that a
// server could run something else than what the gateway decides by and audits: a member of
// JSON-RPC, or the name of a tool, has a sibling that differs only in case, or is there twice.
func CheckClear(m *jsonrpc.Message) *jsonrpc.Error {
	switch {
	case !m.Certain():
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a member's name differs from one of JSON-RPC only in case")
	case m.Method == mcp.MethodCallTool && m.Param("name").Ambiguous:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "params.name can be read in two ways")
	}
	return nil
}

// audit writes the line of a tool call. errorType is that of the answer, which has this many
// bytes.
func (r *Request) audit(errorType string, took time.Duration, answerBytes int) {
	if r.auditLine != nil {
		log := r.auditLine.log
		if member, own := r.auditLine.request.Destination(); member != "" {
			log = log.With("view", r.auditLine.view, "member", member, "memberTool", validText(own, maxAudited))
		}
		log.LogAttrs(context.Background(), slog.LevelInfo, "tool call",
			slog.String("outcome", cmp.Or(clip.Short(errorType), "ok")),
			slog.Float64("seconds", took.Round(time.Microsecond).Seconds()), slog.Int("answerBytes", answerBytes))
	}
}

// AuditNotification writes the line of a tool call without an id, which no answer follows: the
// server may run the tool. It does nothing for other notifications.
func (c ForHandler) AuditNotification(m *jsonrpc.Message) {
	(&Request{auditLine: c.auditOf(m)}).audit("notification", 0, 0)
}

// validText cuts a peer's text to most bytes, and makes it valid UTF-8.
func validText(s string, most int) string {
	return strings.ToValidUTF8(s[:min(most, len(s))], "\uFFFD")
}
