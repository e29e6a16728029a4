package mcpgo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	vocabulary "github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxNotifications is how many notifications may wait for the client. mcp-go drops
	// more, and reports that to the sender. Its own sessions have the same number.
	maxNotifications = 100
	// unregisterTimeout bounds how long Close waits for hooks.
	unregisterTimeout = 2 * time.Second
)

// sdkSession is one session with a server: a jsonrpc.Conn to the gateway, and a
// server.ClientSession to mcp-go.
type sdkSession struct {
	jsonrpc.Local // has the requests: a session of an upstream.Handle
	dialer
	sdkState
	id string
	// ctx lives as long as the session. It is no caller's, so it is kept here.
	ctx     context.Context
	cancel  context.CancelFunc
	arrived *buffer.Queue // notifications that wait for the server
	queue   chan queued   // responses and requests of the server on their way to forward

	lock          sync.Mutex                   // guards all below; not held while calling anyone
	receive       func(msg []byte, err error)  // nil until Push
	notifications chan mcp.JSONRPCNotification // nil until the server asks for it
	asked         map[int64]chan *jsonrpc.Message
	lastAsk       int64
}

var (
	_ jsonrpc.Local                              = (*sdkSession)(nil)
	_ server.SessionWithLogging                  = (*sdkSession)(nil)
	_ server.SessionWithTools                    = (*sdkSession)(nil)
	_ server.SessionWithResources                = (*sdkSession)(nil)
	_ server.SessionWithResourceTemplates        = (*sdkSession)(nil)
	_ server.SessionWithResourceSubscriptionsErr = (*sdkSession)(nil)
	_ server.SessionWithClientInfo               = (*sdkSession)(nil)
	_ server.SessionWithSampling                 = (*sdkSession)(nil)
	_ server.SessionWithElicitation              = (*sdkSession)(nil)
	_ server.SessionWithRoots                    = (*sdkSession)(nil)
)

// register registers the session, unless it has ended by then.
func (s *sdkSession) register() error {
	err := s.server.RegisterSession(s.ctx, s)
	if s.ctx.Err() != nil {
		s.unregister()
	}
	return err
}

func (s *sdkSession) unregister() {
	s.server.UnregisterSession(context.WithoutCancel(s.ctx), s.id)
}

// SessionID returns the id of the session, which is not that of the connection.
func (s *sdkSession) SessionID() string { return s.id }

// Push sets the function that gets what the server sends.
func (s *sdkSession) Push(receive func(msg []byte, err error)) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.receive = receive
	s.Local.Push(func(response []byte, err error) {
		if err != nil {
			receive(nil, err)
			return
		}
		_ = s.push(response) // fails when the session has ended
	})
	go func() { // passes notifications to the server, in order; ends with the session
		for msg, err := s.arrived.Recv(); err == nil; msg, err = s.arrived.Recv() {
			s.handleNotification(msg)
		}
	}()
	if s.notifications != nil {
		go s.forward(s.notifications, receive) // as above
	}
}

// Recv fails: a session pushes.
func (s *sdkSession) Recv() ([]byte, error) {
	return nil, errors.New("a session of package mcpgo pushes its messages")
}

// Send passes on a notification, or the client's answer to a request of the server. It refuses requests: what wraps the
// session must be a jsonrpc.Local, too.
func (s *sdkSession) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	switch {
	case m.Kind == jsonrpc.Request:
		return errors.New("send: a session of package mcpgo takes requests by SendRequest")
	case m.Kind == jsonrpc.Response:
		return s.answer(m)
	case m.Method == vocabulary.MethodCancelled:
		return s.Local.Send(msg)
	}
	return s.arrived.Offer(m.Raw())
}

func (s *sdkSession) handleNotification(msg []byte) {
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(p)
		}
	}()
	s.server.HandleMessage(s.ctx, msg)
}

// push passes a message on after all notifications that the server sent before. It may
// wait for the client. It fails if the session has ended, or has no receiver yet.
func (s *sdkSession) push(msg []byte) error {
	s.lock.Lock()
	receive, notifications := s.receive, s.notifications
	s.lock.Unlock()
	switch {
	case s.ctx.Err() != nil || receive == nil:
		return jsonrpc.ErrClosed
	case notifications == nil:
		receive(msg, nil)
		return nil
	}
	behind := queued{msg, make(chan struct{})}
	select {
	case s.queue <- behind:
	case <-s.ctx.Done():
		return jsonrpc.ErrClosed
	}
	select {
	case <-behind.taken:
		return nil
	case <-s.ctx.Done():
		return jsonrpc.ErrClosed
	}
}

// queued is a response or a request of the server. It goes out after the notifications that the
// server has sent before it.
type queued struct {
	msg   []byte
	taken chan struct{} // closed when the gateway has taken msg
}

// NotificationChannel returns the channel for notifications to the client.
func (s *sdkSession) NotificationChannel() chan<- mcp.JSONRPCNotification {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.notifications == nil {
		s.notifications = make(chan mcp.JSONRPCNotification, maxNotifications)
		if s.receive != nil {
			go s.forward(s.notifications, s.receive) // ends with the session
		}
	}
	return s.notifications
}

// forward passes on notifications and what is queued behind them, in order. It alone takes
// messages from either channel.
func (s *sdkSession) forward(notifications <-chan mcp.JSONRPCNotification, receive func([]byte, error)) {
	for {
		select {
		case n := <-notifications:
			s.pass(n, receive)
		case q := <-s.queue:
			for range len(notifications) {
				s.pass(<-notifications, receive)
			}
			receive(q.msg, nil)
			close(q.taken)
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *sdkSession) pass(n mcp.JSONRPCNotification, receive func([]byte, error)) {
	msg, err := jsonOf(n)
	if err != nil {
		s.log.Warn("notification has no JSON form", "method", n.Method, "err", err)
		return
	}
	receive(msg, nil)
}

// Close ends the session: the contexts of its handlers end, and the server forgets it.
func (s *sdkSession) Close() error {
	s.lock.Lock()
	closed := s.ctx.Err() != nil
	s.cancel()
	s.lock.Unlock()
	if closed {
		return nil
	}
	s.arrived.Abort(jsonrpc.ErrClosed)
	_ = s.Local.Close() // never fails
	ctx, cancel := context.WithTimeout(context.Background(), unregisterTimeout)
	defer cancel()
	if err := within(ctx, func() error { s.unregister(); return nil }); err != nil {
		s.log.Warn("session not unregistered cleanly", "err", err)
	}
	return nil
}
