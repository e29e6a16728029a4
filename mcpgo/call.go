package mcpgo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-sse/mcp-sse/internal/stack"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/peer"
)

// call is a request that the server works on, or whose answer the gateway has not taken.
type call struct {
	number int64
	msg    []byte
	ctx    context.Context
	cancel context.CancelFunc

	session *session
	waiter  jsonrpc.Waiter // runs the call; nil: a goroutine of its own does
}

// Run runs the call, for its waiter.
func (k *call) Run() { k.session.run(k) }

// SendRequest makes the server handle the request m.
func (s *session) SendRequest(m *jsonrpc.Message, number int64, token jsonrpc.Place) error {
	k := &call{number: number, msg: m.WithNumber(number, token), session: s, waiter: m.Waiter}
	if err := s.admit(k, withHeader(m.Context)); err != nil {
		return err
	}
	if k.waiter == nil || !k.waiter.Take(k) {
		k.waiter = nil
		go s.run(k) // ends when the handler returns
	}
	return nil
}

// admit adds a call, unless the session has too much to do or its client too much to
// read. values are those of its HTTP request, nil for none.
func (s *session) admit(k *call, values context.Context) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if len(s.calls) >= maxCalls {
		return jsonrpc.ErrBusy
	}
	if err := s.takeLocked(len(k.msg), s.load+s.waiting); err != nil {
		return err
	}
	if s.calls == nil {
		s.calls = make(map[int64]*call)
	}
	s.calls[k.number] = k
	k.ctx, k.cancel = context.WithCancel(peer.Join(s.ctx, values))
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

// removeLocked removes a call that is over. nil is none.
func (s *session) removeLocked(k *call) {
	if k == nil || s.calls[k.number] != k {
		return
	}
	delete(s.calls, k.number)
	s.giveLocked(len(k.msg))
}

// remove is removeLocked with the lock.
func (s *session) remove(k *call) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.removeLocked(k)
}

// run has the server handle a call, and answers it.
func (s *session) run(k *call) {
	stack.GrowDeep() // mcp-go decodes the call
	o := outgoing{call: k}
	defer func() {
		switch p := recover(); {
		case p != nil:
			s.logPanic(p)
			o.result, o.fault = nil, fault("internal panic: %v", p)
		case o.result == nil && o.fault == nil: // runtime.Goexit
			o.fault = fault("handler ended its goroutine instead of returning a response")
		}
		if k.waiter != nil {
			k.waiter.Returned()
		}
		k.cancel()
		answer := o
		o = outgoing{} // so that nothing but the session keeps the answer while push waits
		if s.push(answer) != nil {
			s.remove(k)
		}
	}()
	o.result, o.fault = parts(s.server.HandleMessage(k.ctx, k.msg))
}

func (s *session) logPanic(p any) {
	s.log.Error("handler panicked", "err", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// parts returns the result or the error object of a response.
func parts(response mcp.JSONRPCMessage) (result, faulty json.RawMessage) {
	switch r := response.(type) {
	case mcp.JSONRPCResponse:
		result, err := encode(r.Result)
		if err != nil {
			return nil, fault("response has no JSON form: %v", err)
		}
		return result, nil
	case mcp.JSONRPCError:
		faulty, err := encode(r.Error)
		if err != nil {
			return nil, fault("error has no JSON form: %v", err)
		}
		return nil, faulty
	}
	return nil, fault("server returned no response, but %T", response)
}

// encode returns v as JSON on one line. The parts of v that make their JSON themselves may
// be neither valid UTF-8 nor without line breaks.
func encode(v any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\ufffd"))
	}
	return b, nil
}

func fault(format string, args ...any) json.RawMessage {
	b, _ := json.Marshal(jsonrpc.Errorf(jsonrpc.CodeInternalError, format, args...)) // it has a JSON form
	return b
}
