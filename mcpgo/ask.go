package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	vocabulary "github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// RequestSampling asks the client to sample from a language model.
func (s *sdkSession) RequestSampling(
	ctx context.Context, request mcp.CreateMessageRequest,
) (*mcp.CreateMessageResult, error) {
	result, err := ask[mcp.CreateMessageResult](ctx, s, "sampling", mcp.MethodSamplingCreateMessage,
		request.CreateMessageParams)
	if err != nil {
		return nil, err
	}
	result.Content, err = mcp.ParseSamplingContent(result.Content)
	if err != nil {
		return nil, fmt.Errorf("failed to parse sampling response content: %w", err)
	}
	return result, nil
}

// RequestElicitation asks the client's user.
func (s *sdkSession) RequestElicitation(
	ctx context.Context, request mcp.ElicitationRequest,
) (*mcp.ElicitationResult, error) {
	return ask[mcp.ElicitationResult](ctx, s, "elicitation", mcp.MethodElicitationCreate, request.Params)
}

// ListRoots asks the client for its roots.
func (s *sdkSession) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	return ask[mcp.ListRootsResult](ctx, s, "list roots", mcp.MethodListRoots, nil)
}

// ask sends a request of the server to the client, and returns the result. kind names the
// request in errors.
func ask[T any](ctx context.Context, s *sdkSession, kind string, method mcp.MCPMethod, params any) (*T, error) {
	result := new(T)
	if err := s.ask(ctx, method, params, result); err != nil {
		return nil, fmt.Errorf("%s request failed: %w", kind, err)
	}
	return result, nil
}

// ask sends a request of the server to the client, waits for the answer, and decodes its
// result. If ctx ends first, it tells the client.
func (s *sdkSession) ask(ctx context.Context, method mcp.MCPMethod, params, result any) error {
	var body json.RawMessage
	if params != nil {
		var err error
		body, err = jsonOf(params)
		if err != nil {
			return err
		}
	}
	number, answer := s.await()
	defer s.forget(number)
	id := jsonrpc.NumberID(number)
	if err := s.push(jsonrpc.NewRequest(id, string(method), body)); err != nil {
		return err
	}
	select {
	case m := <-answer:
		return decode(m, result)
	case <-s.ctx.Done():
		return jsonrpc.ErrClosed
	case <-ctx.Done():
		params := json.RawMessage(`{"requestId":` + id + `}`)
		_ = s.push(jsonrpc.NewNotification(vocabulary.MethodCancelled, params)) // over anyway
		return ctx.Err()
	}
}

// decode returns the result of an answer of the client, or its error.
func decode(m *jsonrpc.Message, result any) error {
	if m.Error() != nil {
		var e mcp.JSONRPCErrorDetails
		if err := json.Unmarshal(m.Error(), &e); err != nil {
			return fmt.Errorf("client answered with an invalid error: %w", err)
		}
		return errors.New(e.Message)
	}
	if err := json.Unmarshal(m.Result(), result); err != nil {
		return fmt.Errorf("client answered with an invalid result: %w", err)
	}
	return nil
}

// await returns the number of a new request of the server's, and where its answer comes.
func (s *sdkSession) await() (int64, <-chan *jsonrpc.Message) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.lastAsk++
	answer := make(chan *jsonrpc.Message, 1)
	s.asked[s.lastAsk] = answer
	return s.lastAsk, answer
}

func (s *sdkSession) forget(number int64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.asked, number)
}

// answer passes an answer of the client to the request of the server that waits for it,
// if there is one.
func (s *sdkSession) answer(m *jsonrpc.Message) error {
	number, _ := rawjson.Integer([]byte(m.ID)) // 0 is no request's
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.ctx.Err() != nil {
		return jsonrpc.ErrClosed
	}
	if answer := s.asked[number]; answer != nil {
		delete(s.asked, number) // so that it has room
		answer <- m
	}
	return nil
}
