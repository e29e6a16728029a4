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

// Server returns an upstream that serves s: Dial connects a session to s, and fails only when its context has
// ended or s is nil. Many gateways may serve one server.
//
// Two bounds hold for each session: the unanswered requests, together with the messages that go-sdk has not read,
// hold at most 8 MiB, and at most 16,384 requests are unanswered. Beyond them Send fails with jsonrpc.ErrBusy. A
// client's responses and cancellations may use 8 MiB more, because they let requests end.
//
// A session is a jsonrpc.Local: it delivers by calling the function that Push sets, and takes requests by SendRequest.
// Recv fails, and so does Send with a request. An upstream of your own that wraps the sessions must return a
// jsonrpc.Local, too.
//
// Close ends the contexts of the handlers and waits for the handlers, but at most 2 s. If one takes longer, Close
// returns an error, and the session stays in s.Sessions until the handler returns.
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
	s := &gatewaySide{id: uuid.NewString(), ended: make(chan struct{}), working: make(map[int64]int)}
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
