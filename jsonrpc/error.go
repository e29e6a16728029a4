package jsonrpc

import (
	"encoding/json"
	"fmt"

	"github.com/mcp-sse/mcp-sse/internal/plainjson"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// Error codes of JSON-RPC 2.0, section 5.1.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
)

// Error is a JSON-RPC error object, and a Go error.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	// Data holds details, in a form that depends on the code; nil for none.
	Data any `json:"data,omitempty"`
}

// Error returns the message and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Errorf returns an Error without data.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// ReasonError returns an error of the gateway for a client's request. reason is for
// programs; retryable says that the request had no effect, or that repeating it has
// none.
func ReasonError(message, reason string, retryable bool) *Error {
	e := Errorf(CodeInternalError, "%s", message)
	e.Data = struct {
		Reason    string `json:"reason"`
		Retryable bool   `json:"retryable"`
	}{reason, retryable}
	return e
}

// NewNotification returns the bytes of a notification; params may be nil.
func NewNotification(method string, params json.RawMessage) []byte {
	return NewRequest("", method, params)
}

// NewRequest returns the bytes of a request; params may be nil.
func NewRequest(id ID, method string, params json.RawMessage) []byte {
	out := make([]byte, 0, 64+len(method)+len(params))
	out = append(out, `{"jsonrpc":"2.0",`...)
	if id != "" {
		out = append(out, `"id":`...)
		out = append(out, id...)
		out = append(out, ',')
	}
	out = append(out, `"method":`...)
	out = append(out, rawjson.Quote(method)...)
	if params != nil {
		out = append(out, `,"params":`...)
		out = append(out, params...)
	}
	return append(out, '}')
}

// NewResult returns the bytes of a response. result must be valid JSON on one line.
func NewResult(id ID, result json.RawMessage) []byte { return newResponse(id, "result", result) }

// NewError returns the bytes of an error response. An empty id becomes null.
func NewError(id ID, e *Error) []byte {
	raw, err := plainjson.Encode(e)
	if err != nil { // Data has no JSON form; the response must go out anyway
		raw, _ = plainjson.Encode(&Error{Code: e.Code, Message: e.Message})
	}
	return newResponse(id, "error", raw)
}

func newResponse(id ID, member string, value json.RawMessage) []byte {
	if id == "" {
		id = Null
	}
	out := make([]byte, 0, 40+len(id)+len(value))
	out = append(out, `{"jsonrpc":"2.0","id":`...)
	out = append(out, id...)
	out = append(out, `,"`...)
	out = append(out, member...)
	out = append(out, `":`...)
	out = append(out, value...)
	return append(out, '}')
}
