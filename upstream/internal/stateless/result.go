package stateless

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// errOtherVersion ends a session whose server speaks another version now.
var errOtherVersion = errors.New("the server no longer speaks MCP " + mcp.VersionStateless)

// Reasons of the errors that only requests to a stateless server get.
const (
	reasonHeaders       = "header_mismatch"
	reasonCapability    = "missing_capability"
	reasonVersion       = "unsupported_version"
	reasonRounds        = "input_rounds"
	reasonAsks          = "input_busy"
	reasonUnsubscribed  = "not_subscribed"
	reasonSubscriptions = "too_many_subscriptions"
)

// resultType returns the type of a result; one without a type is complete. It reports
// false for an unknown type.
func resultType(result json.RawMessage) (string, bool) {
	raw, ok := jsonrpc.Member(result, "resultType")
	if !ok {
		return mcp.ResultComplete, true
	}
	name, _ := jsonrpc.Text(raw)
	return name, name == mcp.ResultComplete || name == mcp.ResultInput
}

// plainResult returns a result as clients of earlier versions know it: without
// resultType.
func plainResult(result json.RawMessage) json.RawMessage {
	return jsonrpc.RemoveMember(result, "resultType")
}

// translateError returns the gateway's own error for an error response that clients
// of earlier versions do not know; nil: they know it.
func translateError(m *jsonrpc.Message) *jsonrpc.Error {
	switch exchange.ErrorCode(m) {
	case mcp.CodeHeaderMismatch:
		return exchange.NewError(exchange.ErrorData{Reason: reasonHeaders}, "the server refused the headers of the request: %s", errorText(m))
	case mcp.CodeMissingCapability:
		return exchange.NewError(exchange.ErrorData{Reason: reasonCapability, RequiredCapabilities: required(m)}, "the server needs capabilities that the client has not declared: %s", missing(m))
	case mcp.CodeUnsupportedVersion:
		return exchange.NewError(exchange.ErrorData{Reason: reasonVersion, Retryable: true}, "%v", errOtherVersion)
	}
	return nil
}

// required returns the capabilities that an error asks for; nil: it does not say.
func required(m *jsonrpc.Message) json.RawMessage {
	member, ok := jsonrpc.Member(m.Error(), "data", "requiredCapabilities")
	if !ok || member[0] != '{' || len(member) > maxRequired {
		return nil
	}
	return member
}

// maxRequired bounds the required capabilities that a client is told, in bytes.
const maxRequired = 4 << 10

// missing names the capabilities that an error asks for.
func missing(m *jsonrpc.Message) string {
	member, _ := jsonrpc.Member(m.Error(), "data", "requiredCapabilities")
	var required map[string]json.RawMessage
	if json.Unmarshal(member, &required) != nil || len(required) == 0 {
		return errorText(m)
	}
	names := make([]string, 0, len(required))
	for name := range required {
		names = append(names, name[:min(64, len(name))])
	}
	slices.Sort(names)
	return strings.Join(names[:min(16, len(names))], ", ")
}

// errorText returns the beginning of the message of an error response.
func errorText(m *jsonrpc.Message) string {
	member, _ := jsonrpc.Member(m.Error(), "message")
	text, _ := jsonrpc.Text(member)
	return text[:min(200, len(text))]
}

// errorFrom returns the error in an error response. Its data stays as it came.
func errorFrom(m *jsonrpc.Message) *jsonrpc.Error {
	var e struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(m.Error(), &e) != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the peer answered with an unreadable error")
	}
	out := &jsonrpc.Error{Code: e.Code, Message: e.Message}
	if e.Data != nil {
		out.Data = e.Data
	}
	return out
}
