package multiplex

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Client gets what a session has for one client. Its methods are called from the
// reader loop, from timers, and from inside Forward. While Answer and Deliver wait,
// so does the session's reader: those of a shared session must not wait.
type Client interface {
	// Answer gets the response to one of the client's requests, with the
	// client's id, once. errorType is what the metrics call the outcome.
	Answer(id jsonrpc.ID, response []byte, errorType string)
	// Fail gets an error of the gateway's own instead, once. It must not wait:
	// it may be called from inside Forward.
	Fail(id jsonrpc.ID, e *jsonrpc.Error, errorType string)
	// Lost gets, instead of Fail, a request that the session has ended under and
	// that may be repeated on another one: it has not been sent, or repeating it
	// changes nothing. A client that does not repeat it answers with e. It must not
	// wait.
	Lost(m *jsonrpc.Message, e *jsonrpc.Error)
	// Deliver gets a notification or a request of the server.
	Deliver(method string, message []byte)
	// Serves reports whether the client has said that it answers such requests.
	Serves(request *jsonrpc.Message) bool
}

// Caller is one client on a session. It is safe for concurrent use.
type Caller struct {
	session   *Session
	client    Client
	name      string
	principal string

	// Guarded by Session.mu:
	requests *pending // that are not answered; a list
	asked    int      // requests of the server that the client has not answered
	left     bool
}

// Attach puts a client on the session. The name is for the logs; the principal
// is who was authenticated, empty when that is not known.
func (s *Session) Attach(client Client, name, principal string) *Caller {
	c := &Caller{session: s, client: client, name: name, principal: principal}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mixed = s.mixed || s.inhabited && s.principal != principal
	s.principal, s.inhabited = principal, true
	s.callers = append(s.callers, c)
	return c
}

// Detach takes a client off the session: its requests are cancelled at the
// server and no longer answered, what the server asked it is refused, and what
// it has subscribed to ends. It is idempotent.
func (c *Caller) Detach() {
	s := c.session
	abandoned, calls := s.detach(c)
	for _, p := range abandoned {
		if p.sent {
			s.sendCancelled(p, "the client has left")
		}
		if p.reply != nil {
			p.reply <- outcome{err: ErrLeft}
		}
	}
	for _, call := range calls {
		s.refuse(call.id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "the client has left"))
	}
	s.sendNext()
}

// detach is the locked step of Detach. It returns the client's requests and those
// that the server has asked it.
func (s *Session) detach(c *Caller) (abandoned []*pending, calls []*serverCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.left {
		return nil, nil
	}
	c.left = true
	s.callers = slices.DeleteFunc(slices.Clone(s.callers), func(other *Caller) bool { return other == c })
	abandoned = s.table.abandonAll(c)
	for _, call := range s.calls.open {
		if call.caller == c {
			s.removeCallLocked(call)
			calls = append(calls, call)
		}
	}
	s.table.forget(c, abandoned)
	return abandoned, calls
}

// ErrLeft is ErrOver for one client: it was detached, which says nothing of the
// session.
var ErrLeft = fmt.Errorf("%w for a client that has left", ErrOver)

// ErrOver reports that the session was over, or the client detached, before the
// session took a message.
var ErrOver = errors.New("the session is over")

// Forward sends a client's message to the server. It does not wait for the
// server. A request is answered through the Client, whatever happens, unless Forward
// fails: with ErrOver when the session is over and has not taken it, or with ErrLeft,
// which is an ErrOver, when the client was detached.
func (c *Caller) Forward(m *jsonrpc.Message) error {
	s := c.session
	switch {
	case m.Kind == jsonrpc.Request:
		return s.forwardRequest(c, m)
	case s.opts.Shared && !m.Certain():
		s.drop(metrics.DroppedShared, "message that can be read in two ways", m)
	case m.Kind == jsonrpc.Response:
		s.forwardResponse(c, m)
	case m.Method == mcp.MethodCancelled:
		s.forwardCancel(c, m)
	case m.Method == mcp.MethodProgress:
		s.forwardProgress(c, m)
	case s.opts.Shared:
		// The server would take it for all clients (roots/list_changed), or has had it
		// (initialized), or it is not known what it would do.
		s.drop(metrics.DroppedShared, "notification that a shared session does not take", m)
	default:
		s.pass(m, m.Raw())
	}
	return nil
}
