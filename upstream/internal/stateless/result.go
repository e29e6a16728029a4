package stateless

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// Reasons of the errors that requests to a stateless server get, besides those of
// all remote servers.
const (
	reasonHeaders       = "header_mismatch"
	reasonCapability    = "missing_capability"
	reasonVersion       = "unsupported_version"
	reasonRounds        = "input_rounds"
	reasonAsks          = "input_busy"
	reasonUnsubscribed  = "not_subscribed"
	reasonSubscriptions = "too_many_subscriptions"
)

// Types of results (MCP 2026-07-28, basic/index).
const (
	resultComplete = "complete"
	resultInput    = "input_required"
)

// resultType returns the type of a result; one without is complete. It reports
// false for a type that is not known.
func resultType(result json.RawMessage) (string, bool) {
	raw, ok := jsonrpc.Member(result, "resultType")
	if !ok {
		return resultComplete, true
	}
	name, _ := jsonrpc.Text(raw)
	return name, name == resultComplete || name == resultInput
}

// plainResult returns a result as clients of earlier versions know it: without
// resultType, all else as it is.
func plainResult(result json.RawMessage) json.RawMessage {
	return jsonrpc.RemoveMember(result, "resultType")
}

// plainError returns an error object as clients of earlier versions know it:
// those that only the gateway can understand become errors of the gateway.
func plainError(raw json.RawMessage) json.RawMessage {
	e := translateError(raw)
	if e == nil {
		return raw
	}
	return encodeError(e)
}

func translateError(raw json.RawMessage) *jsonrpc.Error {
	switch exchange.ErrorCode(raw) {
	case mcp.CodeHeaderMismatch:
		return exchange.NewError(exchange.ErrorData{Reason: reasonHeaders}, "the server refused the headers of the request: %s", exchange.ErrorText(raw))
	case mcp.CodeMissingCapability:
		return exchange.NewError(exchange.ErrorData{Reason: reasonCapability}, "the server needs capabilities that the client has not declared: %s", missing(raw))
	case mcp.CodeUnsupportedVersion:
		return exchange.NewError(exchange.ErrorData{Reason: reasonVersion, Retryable: true}, "%v", errOtherVersion)
	}
	return nil
}

// errorFrom returns an error object of a peer as an error of this side.
func errorFrom(raw json.RawMessage) *jsonrpc.Error {
	var e struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the peer answered with an error that cannot be read")
	}
	out := &jsonrpc.Error{Code: e.Code, Message: e.Message}
	if e.Data != nil {
		out.Data = e.Data
	}
	return out
}

// missing names the capabilities that an error asks for.
func missing(raw json.RawMessage) string {
	member, _ := jsonrpc.Member(raw, "data", "requiredCapabilities")
	var required map[string]json.RawMessage
	if json.Unmarshal(member, &required) != nil || len(required) == 0 {
		return exchange.ErrorText(raw)
	}
	names := make([]string, 0, len(required))
	for name := range required {
		names = append(names, name[:min(64, len(name))])
	}
	slices.Sort(names)
	return strings.Join(names[:min(16, len(names))], ", ")
}

func encodeError(e *jsonrpc.Error) json.RawMessage {
	m, _ := jsonrpc.Member(jsonrpc.NewError("", e), "error")
	return m
}

// initializeResult makes the answer to an initialize out of what the server said
// of itself. The name stands in for that of a server that has none.
func initializeResult(discovered, params json.RawMessage, name string) json.RawMessage {
	member, _ := jsonrpc.Member(params, "protocolVersion")
	version, _ := jsonrpc.Text(member)
	if !mcp.HasInitialize(version) {
		version = mcp.VersionNewest
	}
	capabilities, ok := jsonrpc.Member(discovered, "capabilities")
	if !ok || capabilities[0] != '{' {
		capabilities = json.RawMessage("{}")
	}
	info, ok := jsonrpc.Member(discovered, "_meta", metaServerInfo)
	if !ok || info[0] != '{' {
		info, _ = json.Marshal(struct { // strings always have a JSON form
			Name    string `json:"name"`
			Version string `json:"version"`
		}{name, "unknown"})
	}
	result := json.RawMessage(`{"protocolVersion":"` + version + `"}`)
	result = jsonrpc.SetMember(result, jsonrpc.RemoveMember(capabilities, "tasks"), "capabilities")
	result = jsonrpc.SetMember(result, info, "serverInfo")
	if text, ok := jsonrpc.Member(discovered, "instructions"); ok && text[0] == '"' {
		result = jsonrpc.SetMember(result, text, "instructions")
	}
	return result
}
