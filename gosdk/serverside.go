package gosdk

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// serverSide is a session as go-sdk sees it: a transport with one connection.
type serverSide session

var (
	_ mcp.Transport                = (*serverSide)(nil)
	_ mcp.ProtocolVersionSupporter = (*serverSide)(nil)
	_ mcp.Connection               = (*serverSide)(nil)
)

// Connect returns the connection.
func (c *serverSide) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SupportsProtocolVersion excludes MCP 2026-07-28 and later, which has no HTTP+SSE, as
// go-sdk's own transport does.
func (c *serverSide) SupportsProtocolVersion(version string) bool { return version < "2026-07-28" }

// SessionID returns the id of the session in go-sdk's logs and for ServerSession.ID. No
// client knows it.
func (c *serverSide) SessionID() string { return c.id }

// Read waits for the next message of the client. It returns io.EOF after the end of the
// session; go-sdk then ends the contexts of the handlers.
func (c *serverSide) Read(context.Context) (sdk.Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && c.inbox.len() == 0 {
		c.changed.Wait()
	}
	if c.err != nil {
		return nil, io.EOF
	}
	return c.inbox.take(c.held), nil
}

// Write delivers a message of the server. Until the gateway has taken it, the handler
// waits, which slows a server down whose client does not read. The end of the session
// ends the wait, not the context.
func (c *serverSide) Write(_ context.Context, msg sdk.Message) error {
	s := (*session)(c)
	result, receive, err := s.receivers()
	if err != nil {
		return err
	}
	switch msg := msg.(type) {
	case *sdk.Response:
		switch id := msg.ID.Raw().(type) {
		case int64:
			if !s.responds(id, msg.Error) {
				return nil
			}
			value, fault := partsOf(msg)
			result(id, value, fault)
			s.answered(id)
		case string: // the probe's is the only one
			s.settled()
		}
		return nil
	case *sdk.Request:
		data, err := encode(msg)
		if err == nil {
			receive(data, nil)
		}
		return err
	}
	return nil // there are no others
}

// Close begins the end of the session. go-sdk calls it under a lock, when no handler
// runs any more.
func (c *serverSide) Close() error {
	(*session)(c).end(jsonrpc.ErrDismissed)
	return nil
}

// receivers waits for Push, and returns the functions that take what the server sends.
func (s *session) receivers() (result func(int64, json.RawMessage, json.RawMessage), receive func([]byte, error) bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.receive == nil && s.err == nil {
		s.changed.Wait()
	}
	if s.err != nil {
		return nil, nil, mcp.ErrConnectionClosed
	}
	return s.result, s.receive, nil
}

// answered notes that the gateway has taken the response to a request.
func (s *session) answered(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inbox.answered(number, s.held)
}

// responds notes that the server has a response to a number. It reports false if that is
// not to a client's request; see inbox.
func (s *session) responds(number int64, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inbox.responds(number, err != nil && strings.Contains(err.Error(), askMethod), s.held)
}

// settled notes that the server has answered the probe.
func (s *session) settled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inbox.settled()
	s.changed.Broadcast()
}

// encode returns a request or notification of the server. go-sdk has encoded the params
// already.
func encode(m *sdk.Request) ([]byte, error) {
	if !wellFormed(m.Params) {
		data, err := sdk.EncodeMessage(m)
		return bytes.ToValidUTF8(data, []byte("\uFFFD")), err
	}
	switch id := m.ID.Raw().(type) {
	case nil:
		return jsonrpc.NewNotification(m.Method, m.Params), nil
	case int64:
		return jsonrpc.NewRequest(jsonrpc.ID(strconv.FormatInt(id, 10)), m.Method, m.Params), nil
	}
	return sdk.EncodeMessage(m)
}

// partsOf returns the result or the error object of a response, the other nil.
func partsOf(r *sdk.Response) (result, fault json.RawMessage) {
	if r.Error != nil {
		return nil, faultOf(r)
	}
	if wellFormed(r.Result) && len(r.Result) > 0 {
		return r.Result, nil
	}
	var line bytes.Buffer
	if err := json.Compact(&line, bytes.ToValidUTF8(r.Result, []byte("\uFFFD"))); err != nil {
		return nil, internalFault("the server's result is no JSON: " + err.Error())
	}
	return line.Bytes(), nil
}

// faultOf returns the error object of a response as go-sdk encodes it.
func faultOf(r *sdk.Response) json.RawMessage {
	data, err := sdk.EncodeMessage(&sdk.Response{ID: r.ID, Error: r.Error})
	if err == nil {
		if fault, ok := jsonrpc.Member(bytes.ToValidUTF8(data, []byte("\uFFFD")), "error"); ok {
			return fault
		}
	}
	return internalFault("the server's error has no JSON form: " + r.Error.Error())
}

func internalFault(message string) json.RawMessage {
	m, err := jsonrpc.Parse(jsonrpc.NewError(jsonrpc.Null, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", message)))
	if err != nil {
		return json.RawMessage(`{"code":-32603,"message":"internal error"}`)
	}
	return m.Error()
}

// wellFormed reports whether JSON that go-sdk has encoded can pass as it is: it is UTF-8
// without line breaks.
func wellFormed(data []byte) bool {
	return utf8.Valid(data) && bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0
}
