package multiplex

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// MethodCancelled takes a request back.
const MethodCancelled = "notifications/cancelled"

// Client is a caller on a session. Its methods are called from the reader loop,
// from timers, and from inside Forward; while Answer and Deliver wait, the
// session's reader does, so those of a shared session must not.
type Client interface {
	// Answer gets the response to one of the client's requests, with the
	// client's id, once. errorType is what the metrics call the outcome.
	Answer(id jsonrpc.ID, response []byte, errorType string)
	// Fail gets an error of the gateway's own instead, once. It must not wait:
	// it may be called from inside Forward.
	Fail(id jsonrpc.ID, e *jsonrpc.Error, errorType string)
	// Lost gets, instead of Fail, a request that the session has ended under and
	// that may be repeated on another one: it has not been sent, or repeating it
	// changes nothing. Who does not repeat it answers with e. It must not wait.
	Lost(m *jsonrpc.Message, e *jsonrpc.Error)
	// Deliver gets a notification or a request of the server.
	Deliver(method string, message []byte)
	// Serves reports whether the client has said that it answers such requests.
	Serves(request *jsonrpc.Message) bool
}

// Port is one client's place on a session. It is safe for concurrent use.
type Port struct {
	session   *Session
	client    Client
	name      string
	principal string

	// Guarded by Session.mu:
	requests   *pending // that are not answered; a list
	asked      int      // requests of the server that the client has not answered
	subscribed int      // resources, on a shared session
	level      int8     // of the log messages it wants, on a shared session; 0: all
	left       bool
}

// Attach puts a client on the session. The name is for the logs; the principal
// is who was authenticated, empty when that is not known.
func (s *Session) Attach(c Client, name, principal string) *Port {
	t := &Port{session: s, client: c, name: name, principal: principal}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mixed = s.mixed || s.inhabited && s.principal != principal
	s.principal, s.inhabited = principal, true
	s.ports = append(s.ports, t)
	return t
}

// Detach takes a client off the session: its requests are cancelled at the
// server and no longer answered, what the server asked it is refused, and what
// it has subscribed to ends. It is idempotent.
func (t *Port) Detach() {
	s := t.session
	s.mu.Lock()
	if t.left {
		s.mu.Unlock()
		return
	}
	t.left = true
	s.ports = slices.DeleteFunc(slices.Clone(s.ports), func(other *Port) bool { return other == t })
	taken := s.withdrawLocked(t)
	var asked []*serverCall
	for id, call := range s.calls.open {
		if call.port == t {
			asked = append(asked, s.endCallLocked(id, t))
		}
	}
	s.tasks.leave(t)
	s.elicitations.leave(t)
	s.endSubscriptionsLocked(t, subscribing(taken))
	s.relevelLocked()
	s.mu.Unlock()
	for _, p := range taken {
		if p.sent {
			s.tellCancelled(p, "the client has left")
		}
		if p.reply != nil {
			p.reply <- outcome{err: ErrLeft}
		}
	}
	for _, call := range asked {
		s.refuse(call.id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "the client has left"))
	}
	s.next()
}

// ErrLeft is ErrOver for one port: it was left, which says nothing of the session.
var ErrLeft = fmt.Errorf("%w for a client that has left", ErrOver)

// withdrawLocked takes all requests of a port out of the table.
func (s *Session) withdrawLocked(t *Port) []*pending {
	var taken []*pending
	for t.requests != nil {
		p := t.requests
		s.removeLocked(p)
		if p.sent {
			s.abandonLocked(p.id)
		}
		taken = append(taken, p)
	}
	slices.Reverse(taken) // as they came
	return taken
}

// subscribing returns the URIs that the server was being asked to watch.
func subscribing(taken []*pending) (uris []string) {
	for _, p := range taken {
		if p.sent && p.method == methodSubscribe && p.lane != nil {
			uris = append(uris, p.uri)
		}
	}
	return uris
}

// ErrOver reports that the session was over before it took a message, or that the
// port was left.
var ErrOver = errors.New("the session is over")

// Forward sends a client's message to the server. It does not wait for the
// server. A request is answered through the port's Client, whatever happens,
// unless Forward fails: with ErrOver, the session is over and has not taken it, or
// with ErrLeft, which is an ErrOver, the port was left.
func (t *Port) Forward(m *jsonrpc.Message) error {
	switch {
	case m.Kind == jsonrpc.Request:
		return t.session.forward(t, m)
	case t.session.opts.Shared && !m.Certain():
		t.session.drop(metrics.DroppedShared, "message that can be read in two ways", m)
	case m.Kind == jsonrpc.Response:
		t.response(m)
	case m.Method == MethodCancelled:
		t.cancel(m)
	case m.Method == methodProgress:
		t.progress(m)
	case t.session.opts.Shared:
		// The server would take it for all (roots/list_changed), or has had it
		// (initialized), or it is not known what it would do.
		t.session.drop(metrics.DroppedShared, "notification that a shared session does not take", m)
	default:
		t.session.pass(m, m.Raw())
	}
	return nil
}
