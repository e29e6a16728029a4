package mcpgo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Server returns an upstream that serves s: each Dial registers a session with s. Several
// gateways may serve the same s. The sessions that Dial returns can only be used as
// jsonrpc.Local.
//
// The contexts of handlers have the session, as server.ClientSessionFromContext returns
// it, and with gateway.Options.PassRequest the values of the client's HTTP requests: the
// headers that gateway.PassRequest.Headers names are those of upstream.CallerFromContext, not the
// Header of mcp-go's requests. A context ends when the client cancels the request, and
// with the session.
//
// A session takes requests as an upstream.Handle does. Notifications are handled one after
// the other, in order; 8 MiB of them may wait. The panic of a handler is logged.
//
// A session is a jsonrpc.Local: it delivers by calling the function that Push sets, and takes requests by SendRequest.
// Recv fails, and so does Send with a request. An upstream of your own that wraps the sessions must return a
// jsonrpc.Local, too.
//
// Close waits up to 2 s for hooks of
// OnUnregisterSession, and does not wait for handlers.
func Server(s *server.MCPServer) upstream.Upstream {
	return dialer{server: s, log: slog.New(slog.DiscardHandler)}
}

// dialer opens sessions with one server.
type dialer struct {
	server *server.MCPServer
	log    *slog.Logger
}

// Observed returns d with sessions that log to l.
func (d dialer) Observed(l *slog.Logger, _ *metrics.Metrics) jsonrpc.Dialer {
	if l != nil {
		d.log = throttle.NewLines().Logger(l)
	}
	return d
}

// Dial registers a session. It fails when ctx has ended, and when a hook of
// OnRegisterSession panics or does not return before ctx ends.
func (d dialer) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	if d.server == nil {
		return nil, errors.New("dial mcp-go server: there is no server")
	}
	s := &sdkSession{
		dialer: d, id: uuid.NewString(), arrived: buffer.NewQueue(buffer.SendLimit),
		queue: make(chan queued), asked: make(map[int64]chan *jsonrpc.Message),
	}
	s.known = new(server.InProcessSession)
	requests, err := upstream.Handle(s.handle).Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("dial mcp-go server: %w", err)
	}
	s.Local = requests.(jsonrpc.Local)
	s.ctx, s.cancel = context.WithCancel(d.server.WithContext(caller.Values(ctx), s))
	if err := within(ctx, s.register); err != nil {
		_ = s.Close() // its error is nil
		return nil, fmt.Errorf("dial mcp-go server: register session: %w", err)
	}
	return s, nil
}

// within calls f in a goroutine of its own and waits until it returns or ctx ends. A panic
// of f, or its end without a return, is an error.
func within(ctx context.Context, f func() error) error {
	result := make(chan error, 1)
	go func() { // ends when f does
		err := errors.New("hook ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("hook panicked: %v", p)
			}
			result <- err
		}()
		err = f()
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
