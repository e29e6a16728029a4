package stateless

import (
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Complete returns a result as this version demands it: with its type, how long it may be
// cached, and the server's name. info is the serverInfo of an initialize; nil: unknown.
func Complete(method string, result, info json.RawMessage) json.RawMessage {
	names := []string{"resultType"}
	switch method { // MCP 2026-07-28, server/utilities/caching
	case mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources,
		mcp.MethodListTemplates, mcp.MethodReadResource:
		names = append(names, "ttlMs", "cacheScope")
	}
	if info != nil {
		names = append(names, "_meta")
	}
	return rawjson.EditMembers(result, names, func(name string, value json.RawMessage) json.RawMessage {
		switch {
		case name == "resultType":
			return rawjson.Quote(mcp.ResultComplete)
		case name == "_meta":
			return withServerInfo(value, info)
		case value != nil:
			return value
		case name == "ttlMs":
			return json.RawMessage("0")
		default:
			return json.RawMessage(`"private"`)
		}
	})
}

// Signed returns a result that names the server (MCP 2026-07-28, basic, _meta).
func Signed(result, info json.RawMessage) json.RawMessage {
	if info == nil {
		return result
	}
	return rawjson.EditMembers(result, []string{"_meta"}, func(_ string, meta json.RawMessage) json.RawMessage {
		return withServerInfo(meta, info)
	})
}

// withServerInfo returns the _meta of a result with the name of the server, unless it has one.
func withServerInfo(meta, info json.RawMessage) json.RawMessage {
	if len(meta) == 0 || meta[0] != '{' {
		meta = json.RawMessage("{}")
	}
	return setDefault(meta, mcp.MetaServerInfo, info)
}

// setDefault adds a member that is missing.
func setDefault(obj json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	if _, ok := rawjson.Member(obj, name); ok {
		return obj
	}
	return rawjson.SetMember(obj, value, name)
}

// ResultType returns the type of a result; one without a type is complete. It reports
// false for an unknown type.
func ResultType(result json.RawMessage) (string, bool) {
	raw, ok := rawjson.Member(result, "resultType")
	if !ok {
		return mcp.ResultComplete, true
	}
	name, _ := rawjson.Text(raw)
	return name, name == mcp.ResultComplete || name == mcp.ResultInput
}

// ErrorOf returns the error in an error object. Its data stays as it came.
func ErrorOf(raw json.RawMessage) *jsonrpc.Error {
	var e struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the peer answered with an unreadable error")
	}
	out := &jsonrpc.Error{Code: e.Code, Message: e.Message}
	if e.Data != nil {
		out.Data = e.Data
	}
	return out
}

// RequiredCapabilities returns what the data of an error says that the client must
// declare.
func RequiredCapabilities(data json.RawMessage) (json.RawMessage, bool) {
	required, ok := rawjson.Member(data, "requiredCapabilities")
	return required, ok && required[0] == '{'
}
