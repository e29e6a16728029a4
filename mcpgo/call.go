package mcpgo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// handle is the upstream.Handle of the session's requests: it returns the response to one.
func (s *sdkSession) handle(ctx context.Context, msg json.RawMessage) (response any) {
	raw, ok := rawjson.Member(msg, "id")
	if !ok { // a cancellation, which has ended the context; mcp-go would do no more
		return nil
	}
	id := jsonrpc.ID(raw)
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(p)
			response = fault(id, "internal panic: %v", p)
		}
	}()
	return responseTo(id, s.server.HandleMessage(s.server.WithContext(ctx, s), msg))
}

func (s *sdkSession) logPanic(p any) {
	s.log.Error("handler panicked", "err", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// responseTo returns the bytes of a response to the request with the id.
func responseTo(id jsonrpc.ID, response mcp.JSONRPCMessage) []byte {
	switch r := response.(type) {
	case mcp.JSONRPCResponse:
		result, err := jsonOf(r.Result)
		if err != nil {
			return fault(id, "response has no JSON form: %v", err)
		}
		return jsonrpc.NewResult(id, result)
	case mcp.JSONRPCError:
		e := &jsonrpc.Error{Code: r.Error.Code, Message: r.Error.Message, Data: r.Error.Data}
		return bytes.ToValidUTF8(jsonrpc.NewError(id, e), []byte("\ufffd"))
	}
	return fault(id, "server returned no response, but %T", response)
}

// jsonOf returns v as JSON on one line. The parts of v that make their JSON themselves may
// not be valid UTF-8.
func jsonOf(v any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	return bytes.ToValidUTF8(b, []byte("\ufffd")), err
}

func fault(id jsonrpc.ID, format string, args ...any) []byte {
	return jsonrpc.NewError(id, jsonrpc.Errorf(jsonrpc.CodeInternalError, format, args...))
}
