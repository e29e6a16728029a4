package main

import (
	"context"
	"encoding/json"
)

// request is what the echo reads of a message.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// The results that do not depend on the request.
const (
	initialized = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1.0"}}`
	toolList    = `{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}}]}`
)

// echo is the raw function: an MCP server with the tool echo, whose result is the
// params of the call. It returns nil for a notification.
func echo(_ context.Context, msg json.RawMessage) any {
	if answer := answer(msg); answer != nil {
		return answer
	}
	return nil
}

// answer returns the response to a message, nil for none.
func answer(msg []byte) json.RawMessage {
	var r request
	if json.Unmarshal(msg, &r) != nil || r.ID == nil {
		return nil
	}
	out := make([]byte, 0, len(msg)+256)
	out = append(append(out, `{"jsonrpc":"2.0","id":`...), r.ID...)
	out = append(out, `,"result":`...)
	switch r.Method {
	case "initialize":
		out = append(out, initialized...)
	case "tools/list":
		out = append(out, toolList...)
	case "tools/call":
		out = append(out, r.Params...)
	default:
		out = append(out, `{}`...)
	}
	return append(out, '}')
}
