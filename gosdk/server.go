package gosdk

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Server serves s: Dial connects a session to it, and fails only when its context has
// ended or s is nil. Many gateways may serve one server.
//
// Send fails with jsonrpc.ErrBusy while the unanswered requests and the messages that
// go-sdk has not read hold 8 MiB, or 16,384 requests are unanswered. A client's responses
// and cancellations may use 8 MiB more. Sessions deliver by calls only: they are a
// jsonrpc.Local. Close ends the contexts of the handlers and waits
// for them, but at most 2 s; a handler that takes longer keeps its session in s.Sessions
// until it returns, and Close returns an error.
func Server(s *mcp.Server) upstream.Upstream {
	return dialer(func(context.Context) *mcp.Server { return s })
}

// dialer connects sessions to the servers that it returns.
type dialer func(context.Context) *mcp.Server

var errNoServer = errors.New("dial go-sdk server: the server is nil")

// Dial connects a session; see [Server].
func (d dialer) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("dial go-sdk server: %w", err)
	}
	server := d(ctx)
	if server == nil {
		return nil, errNoServer
	}
	values := caller.Values(ctx)
	s := &session{id: uuid.NewString(), ended: make(chan struct{}), working: make(map[int64]int)}
	if extra := s.extraOf(values); extra != nil {
		s.extra = *extra
	}
	s.changed.L = &s.mu
	connected, err := server.Connect(values, (*serverSide)(s), nil)
	if err != nil {
		return nil, fmt.Errorf("dial go-sdk server: %w", err)
	}
	s.update(func() { s.connected = connected })
	return s, nil
}
