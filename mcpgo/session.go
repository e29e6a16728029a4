package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	vocabulary "github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// sendLimit bounds the bytes of requests and notifications that one session works
	// on; a request is taken only if they, and the answers that wait for the client, are
	// below it. maxCalls bounds the requests: each has a goroutine.
	sendLimit = 8 << 20
	maxCalls  = 16384
	// unregisterTimeout bounds how long Close waits for hooks.
	unregisterTimeout = 2 * time.Second
)

// session is one session with a server: a jsonrpc.Conn to the gateway, and a
// server.ClientSession to mcp-go.
type session struct {
	dialer
	state
	id string
	// ctx lives as long as the session. It is no caller's, so it is kept here.
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when the session has ended

	// Set before the first message.
	results func(number int64, result, fault json.RawMessage)

	lock    sync.Mutex // guards all below; not held while calling anyone
	receive func(msg []byte, err error) bool
	closed  bool
	load    int // bytes of calls and arrived

	calls   map[int64]*call // by number; nil: there has been none
	arrived [][]byte        // notifications that wait for the server
	handler bool            // a goroutine handles arrived

	notifications chan mcp.JSONRPCNotification // nil until the server asks for it
	forwarding    bool                         // a goroutine reads from notifications
	outgoing      []outgoing                   // each has a marker in notifications, or will
	waiting       int                          // bytes of outgoing

	asked   map[int64]chan *jsonrpc.Message // the server's unanswered requests; nil: there has been none
	lastAsk int64
}

var (
	_ jsonrpc.ResultPusher                       = (*session)(nil)
	_ jsonrpc.RequestSender                      = (*session)(nil)
	_ server.SessionWithLogging                  = (*session)(nil)
	_ server.SessionWithTools                    = (*session)(nil)
	_ server.SessionWithResources                = (*session)(nil)
	_ server.SessionWithResourceTemplates        = (*session)(nil)
	_ server.SessionWithResourceSubscriptionsErr = (*session)(nil)
	_ server.SessionWithClientInfo               = (*session)(nil)
	_ server.SessionWithSampling                 = (*session)(nil)
	_ server.SessionWithElicitation              = (*session)(nil)
	_ server.SessionWithRoots                    = (*session)(nil)
)

// register registers the session, unless it has ended by then.
func (s *session) register() error {
	err := s.server.RegisterSession(s.ctx, s)
	if s.ctx.Err() != nil {
		s.unregister()
	}
	return err
}

func (s *session) unregister() {
	s.server.UnregisterSession(context.WithoutCancel(s.ctx), s.id)
}

// SessionID returns the id of the session, which is not that of the connection.
func (s *session) SessionID() string { return s.id }

// PushResults sets the function that gets the answers to requests.
func (s *session) PushResults(receive func(number int64, result, fault json.RawMessage)) {
	s.results = receive
}

// Push sets the function that gets what the server sends by itself.
func (s *session) Push(receive func(msg []byte, err error) bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.receive = receive
	s.forwardLocked()
}

// Recv fails: a session pushes.
func (s *session) Recv() ([]byte, error) {
	return nil, errors.New("a session of package mcpgo pushes its messages")
}

// Send passes on a notification, or the client's answer to a request of the server.
func (s *session) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	switch {
	case m.Kind == jsonrpc.Request:
		return errors.New("send: a session of package mcpgo takes requests by SendRequest")
	case m.Kind == jsonrpc.Response:
		return s.answer(m)
	case m.Method == vocabulary.MethodCancelled: // mcp-go ends the context too, and no more
		return s.cancelCall(m)
	}
	return s.arrive(m.Raw())
}

// arrive adds a notification to those that wait for the server.
func (s *session) arrive(msg []byte) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.takeLocked(len(msg), s.load); err != nil {
		return err
	}
	s.arrived = append(s.arrived, msg)
	if !s.handler {
		s.handler = true
		go s.handleArrived() // ends when none waits
	}
	return nil
}

// handleArrived passes notifications to the server, in order.
func (s *session) handleArrived() {
	defer func() { // a handler may end the goroutine
		s.lock.Lock()
		defer s.lock.Unlock()
		if s.handler = len(s.arrived) > 0; s.handler {
			go s.handleArrived() // as this one
		}
	}()
	for msg := s.nextArrived(); msg != nil; msg = s.nextArrived() {
		s.handleNotification(msg)
	}
}

func (s *session) nextArrived() []byte {
	s.lock.Lock()
	defer s.lock.Unlock()
	if len(s.arrived) == 0 {
		s.arrived = nil
		return nil
	}
	msg := s.arrived[0]
	s.arrived[0] = nil
	s.arrived = s.arrived[1:]
	return msg
}

func (s *session) handleNotification(msg []byte) {
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(p)
		}
		s.lock.Lock()
		defer s.lock.Unlock()
		s.giveLocked(len(msg))
	}()
	s.server.HandleMessage(s.ctx, msg)
}

// takeLocked takes n bytes for a message to the server, beside load bytes.
func (s *session) takeLocked(n, load int) error {
	switch {
	case s.closed:
		return jsonrpc.ErrClosed
	case load > 0 && load+n > sendLimit:
		return jsonrpc.ErrBusy
	case load+n <= budget.Free:
		s.held.Force(n) // it may be what ends other work
	case !s.held.Take(n, metrics.HeldSend):
		return budget.ErrBusy
	}
	s.load += n
	return nil
}

func (s *session) giveLocked(n int) {
	s.load -= n
	s.held.Give(n)
}

// Close ends the session: the contexts of its handlers end, and the server forgets it.
func (s *session) Close() error {
	if !s.end() {
		return nil
	}
	s.cancel()
	close(s.done)
	if s.receive != nil {
		s.receive(nil, jsonrpc.ErrClosed)
	}
	ctx, cancel := context.WithTimeout(context.Background(), unregisterTimeout)
	defer cancel()
	if err := within(ctx, func() error { s.unregister(); return nil }); err != nil {
		s.log.Warn("session not unregistered cleanly", "err", err)
	}
	return nil
}

// end is the locked step of Close. It reports whether the session has ended now.
func (s *session) end() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	for _, msg := range s.arrived {
		s.giveLocked(len(msg))
	}
	for _, o := range s.outgoing {
		s.removeLocked(o.call)
	}
	s.leaveLocked(s.waiting)
	s.arrived, s.outgoing = nil, nil
	return true
}
