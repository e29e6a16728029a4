package mcpgo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/peer"
)

// call is a request that the server works on, or whose response the gateway has not taken.
type call struct {
	number int64
	msg    []byte
	ctx    context.Context
	cancel context.CancelFunc
}

// SendRequest makes the server handle the request m.
func (s *session) SendRequest(m *jsonrpc.Message, number int64) error {
	k := &call{number: number, msg: m.Renumbered(jsonrpc.NumberID(number))}
	s.lock.Lock()
	defer s.lock.Unlock()
	if len(s.calls) >= maxCalls {
		return jsonrpc.ErrBusy
	}
	if err := s.takeLocked(len(k.msg)); err != nil {
		return err
	}
	s.calls[number] = k
	k.ctx, k.cancel = context.WithCancel(peer.Join(s.ctx, m.Context))
	s.workers.Go(func() { s.run(k) }) // ends when the handler returns and the gateway has taken the response
	return nil
}

// cancelCall ends the context of the call that m cancels, if there is one.
func (s *session) cancelCall(m *jsonrpc.Message) error {
	raw, _ := jsonrpc.Member(m.Params(), "requestId")
	number, _ := jsonrpc.Integer(raw) // 0 is no call's
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.closed {
		return jsonrpc.ErrClosed
	}
	if k := s.calls[number]; k != nil {
		k.cancel()
	}
	return nil
}

func (s *session) remove(k *call) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.calls, k.number)
	s.load -= len(k.msg)
}

// run calls the server for a request, and delivers the response.
func (s *session) run(k *call) {
	id := jsonrpc.NumberID(k.number)
	var response []byte
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(p)
			response = fault(id, "internal panic: %v", p)
		} else if response == nil { // runtime.Goexit
			response = fault(id, "handler ended its goroutine instead of returning a response")
		}
		k.cancel()
		_ = s.push(response) // fails when the session has ended
		s.remove(k)
	}()
	response = responseTo(id, s.server.HandleMessage(k.ctx, k.msg))
}

func (s *session) logPanic(p any) {
	s.log.Error("handler panicked", "err", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// responseTo returns the bytes of a response to the request with the id.
func responseTo(id jsonrpc.ID, response mcp.JSONRPCMessage) []byte {
	switch r := response.(type) {
	case mcp.JSONRPCResponse:
		result, err := encode(r.Result)
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

// encode returns v as JSON on one line. The parts of v that make their JSON themselves may
// not be valid UTF-8.
func encode(v any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	return bytes.ToValidUTF8(b, []byte("\ufffd")), err
}

func fault(id jsonrpc.ID, format string, args ...any) []byte {
	return jsonrpc.NewError(id, jsonrpc.Errorf(jsonrpc.CodeInternalError, format, args...))
}
