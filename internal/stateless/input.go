package stateless

import (
	"crypto/rand"
	"encoding/json"
	"slices"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// Bounds on the input that a server asks for during one request (MCP 2026-07-28,
// basic/patterns/mrtr).
const (
	MaxRounds = 10 // how often it may ask
	MaxInputs = 32 // what it may ask at once
)

// AsksInput reports whether a server may ask for input to a request of that method.
func AsksInput(method string) bool {
	return slices.Contains([]string{mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource}, method)
}

// InputRequired returns the result that asks for input. Without a state, the client sends
// the request again as if for the first time.
func InputRequired(requests json.RawMessage, state string) json.RawMessage {
	result := rawjson.SetMember(json.RawMessage("{}"), rawjson.Quote(mcp.ResultInput), "resultType")
	result = rawjson.SetMember(result, requests, "inputRequests")
	if state != "" {
		result = rawjson.SetMember(result, rawjson.Quote(state), "requestState")
	}
	return result
}

// InputRequest returns a request of a server to the client as this version has it: without
// a progress token, and without the id of a URL elicitation. It always has params, which roots/list need not have:
// go-sdk 1.8 fails without them.
func InputRequest(method string, params json.RawMessage) json.RawMessage {
	request := rawjson.SetMember(json.RawMessage("{}"), rawjson.Quote(method), "method")
	if params == nil {
		params = json.RawMessage("{}")
	}
	if method == mcp.MethodElicit {
		params = rawjson.RemoveMember(params, "elicitationId")
	}
	return rawjson.SetMember(request, CutMeta(params, "progressToken"), "params")
}

// RequestParams is the inverse of InputRequest: it returns the params of a request to a
// client of 2025-11-25, where a URL elicitation must have an id.
func RequestParams(method string, params json.RawMessage) json.RawMessage {
	if mode, _ := rawjson.Member(params, "mode"); method == mcp.MethodElicit && string(mode) == `"url"` {
		return setDefault(params, "elicitationId", rawjson.Quote(rand.Text()))
	}
	return params
}
