package gosdk

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// serverSide is a session as go-sdk sees it: a transport with one connection.
type serverSide gatewaySide

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
	for c.err == nil && len(c.inbox) == 0 {
		c.changed.Wait()
	}
	if c.err != nil {
		return nil, io.EOF
	}
	return (*gatewaySide)(c).nextLocked(), nil
}

// Write delivers a message of the server. Until the gateway has taken it, the handler
// waits, which slows a server down whose client does not read. The end of the session
// ends the wait, not the context.
func (c *serverSide) Write(_ context.Context, msg sdk.Message) error {
	s := (*gatewaySide)(c)
	receive, err := s.receiver()
	if err != nil {
		return err
	}
	data, err := encodeMessage(msg)
	response, ok := msg.(*sdk.Response)
	switch {
	case err == nil:
		receive(data, nil)
	case ok:
		id, _ := json.Marshal(response.ID.Raw()) // a number or a string
		receive(jsonrpc.NewError(jsonrpc.ID(id),
			jsonrpc.Errorf(jsonrpc.CodeInternalError, "the server's answer has no JSON form: %v", err)), nil)
	default:
		return err
	}
	if ok {
		number, _ := response.ID.Raw().(int64)
		s.answered(number)
	}
	return nil
}

// Close begins the end of the session. go-sdk calls it under a lock, when no handler
// runs any more.
func (c *serverSide) Close() error {
	(*gatewaySide)(c).end(jsonrpc.ErrDismissed)
	return nil
}

// receiver waits for Push, and returns the function that takes what the server sends.
func (s *gatewaySide) receiver() (receive func([]byte, error), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.receive == nil && s.err == nil {
		s.changed.Wait()
	}
	if s.err != nil {
		return nil, mcp.ErrConnectionClosed
	}
	return s.receive, nil
}

// encodeMessage returns a message of the server. go-sdk has encoded its params or result already.
func encodeMessage(msg sdk.Message) ([]byte, error) {
	switch m := msg.(type) {
	case *sdk.Response:
		number, ok := m.ID.Raw().(int64)
		if ok && m.Error == nil && len(m.Result) > 0 && wellFormed(m.Result) {
			return jsonrpc.NewResult(jsonrpc.NumberID(number), m.Result), nil
		}
	case *sdk.Request:
		if !m.IsCall() && wellFormed(m.Params) {
			return jsonrpc.NewNotification(m.Method, m.Params), nil
		}
	}
	data, err := sdk.EncodeMessage(msg)
	return bytes.ToValidUTF8(data, []byte("\uFFFD")), err
}

// wellFormed reports whether JSON that go-sdk has encoded can pass as it is: it is UTF-8
// without line breaks.
func wellFormed(data []byte) bool {
	return utf8.Valid(data) && !bytes.ContainsAny(data, "\r\n")
}
