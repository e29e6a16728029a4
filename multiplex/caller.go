package multiplex

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Client receives what a session has for one client, beside the answers to its requests.
// While Deliver waits, so does the session's reader, so on a shared session it must not
// wait.
type Client interface {
	// Lost returns a request because the session ended. If it still has its Message, it
	// may be repeated on another session: it was not sent, or repeating it changes
	// nothing. A client that does not repeat it must answer it with e. Lost must not wait.
	Lost(r *connstate.Request, e *jsonrpc.Error)
	// Deliver passes a notification or a request of the server. related is the client's
	// request that the message came with or is about, empty if that is unknown.
	Deliver(method string, related jsonrpc.ID, message []byte)
	// Serves reports whether the client has declared that it answers such requests.
	Serves(request *jsonrpc.Message) bool
}

// Caller is one client on a session. It is safe for concurrent use.
type Caller struct {
	session   *Session
	client    Client
	name      string
	principal string

	// Guarded by Session.mu:
	entries   map[int64]*entry // unanswered requests, by id on the wire
	openCalls int              // requests of the server that the client has not answered
	left      bool
}

// Attach puts a client on the session. name is for the logs; principal is who was
// authenticated, empty if unknown.
func (s *Session) Attach(client Client, name, principal string) *Caller {
	c := &Caller{session: s, client: client, name: name, principal: principal, entries: make(map[int64]*entry)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mixed = s.mixed || s.inhabited && s.principal != principal
	s.principal, s.inhabited = principal, true
	s.callers = append(s.callers, c)
	return c
}

// Detach takes the client off the session. It cancels the client's requests at the
// server and leaves them unanswered, refuses the server's requests to it, and ends
// its subscriptions. It is idempotent.
func (c *Caller) Detach() {
	s := c.session
	abandoned, calls := s.detach(c)
	for _, e := range abandoned {
		if e.sent() {
			s.sendCancelled(e, "the client has left")
		}
		if e.reply != nil {
			e.reply <- outcome{err: ErrLeft}
		}
	}
	for _, call := range calls {
		s.refuse(call.id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "the client has left"))
	}
	s.sendNext()
}

// detach is the locked step of Detach. It returns the client's requests and the
// server's requests to it.
func (s *Session) detach(c *Caller) (abandoned []*entry, calls []*serverCall) {
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

// ErrLeft is ErrOver for one client: it was detached. It says nothing about the
// session.
var ErrLeft = fmt.Errorf("%w for a client that has left", ErrOver)

// ErrOver reports that the session was over, or the client detached, before the
// session took a message.
var ErrOver = errors.New("the session is over")

// Forward sends a client's notification or response to the server, without waiting for
// the server, or drops it. Send and Cancel are for requests.
func (c *Caller) Forward(m *jsonrpc.Message) {
	s := c.session
	switch {
	case s.opts.Shared && !m.Certain():
		s.drop(metrics.DroppedShared, "message that can be read in two ways", m)
	case m.Kind == jsonrpc.Response:
		s.forwardResponse(c, m)
	case m.Method == mcp.MethodProgress:
		s.forwardProgress(c, m)
	case s.opts.Shared:
		// The server would apply it to all clients (roots/list_changed), has had it
		// already (initialized), or may do anything.
		s.drop(metrics.DroppedShared, "notification that a shared session does not take", m)
	default:
		s.passToServer(m, m.Raw())
	}
}

// Callers returns the number of clients on the session.
func (s *Session) Callers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.callers)
}
