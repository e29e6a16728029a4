package multiplex

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Client receives what a session has for one client, beside the answers to its requests.
// While Deliver waits, so does the session's reader, so on a shared session it must not
// wait.
type Client interface {
	// Lost returns a request because the session ended. A client that does not repeat it must answer it with e. Lost
	// must not wait.
	Lost(r *connstate.Request, loss Loss, e *jsonrpc.Error)
	// Deliver passes a notification or a request of the server. related is the client's
	// request to which the message is related, or that it is about; empty if that is unknown, null if there is none.
	Deliver(method string, related jsonrpc.ID, message []byte)
	// Progress is Deliver for progress of a client's request, which must not reach the client
	// after the answer.
	Progress(r *connstate.Request, message []byte)
	// SeesDetails reports whether the client may see what errors say of the server: see package details.
	SeesDetails() bool
	// Serves reports whether the client has declared that it answers such requests.
	Serves(request *jsonrpc.Message) bool
}

// Loss says what may become of a request whose session has ended.
type Loss uint8

const (
	// MustFail: it gets an error. The server may have it, and repeating it may change something there; or its client
	// has cancelled it; or its message was not kept, because it is long or many are kept.
	MustFail Loss = iota
	// MayRepeat: another session may get it, and it has its Message again. It was not sent, or repeating it changes
	// nothing.
	MayRepeat
)

// Caller is one client on a session. It is safe for concurrent use.
type Caller struct {
	session   *Session
	client    Client
	name      string
	principal string

	left bool // guarded by Session.mu
}

// Attach puts a client on the session. name is for the logs; principal is who was
// authenticated, empty if unknown.
func (s *Session) Attach(client Client, name, principal string) *Caller {
	c := &Caller{session: s, client: client, name: name, principal: principal}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.principals == noPrincipal:
		s.principals = onePrincipal
	case s.principal != principal:
		s.principals = severalPrincipals
	}
	s.principal = principal
	s.callers = append(s.callers, c)
	return c
}

// Detach takes the client off a shared session. It cancels the client's requests at the
// server and leaves them unanswered, and ends its subscriptions. A server that does not
// name its answers is let finish: the next request waits for that. Detach is idempotent.
func (c *Caller) Detach() {
	s := c.session
	left, isSerial := s.detach(c)
	for _, e := range left {
		if e.sent() && !isSerial {
			s.sendCancelled(e, "the client has left")
		}
		if e.reply != nil {
			e.reply <- outcome{err: ErrLeft}
		}
	}
	s.sendNext()
}

// detach is the locked step of Detach. It returns the client's requests, and whether the
// server does not name its answers.
func (s *Session) detach(c *Caller) (left []*entry, isSerial bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.table
	if c.left {
		return nil, t.certainty.isSerial()
	}
	c.left = true
	s.callers = slices.DeleteFunc(slices.Clone(s.callers), func(other *Caller) bool { return other == c })
	own := make(map[int64]*entry)
	for id, e := range t.byID {
		if e.caller == c {
			own[id] = e
		}
	}
	isSerial = t.certainty.isSerial()
	for _, e := range oldestFirst(own) {
		if isSerial && e.sent() {
			t.leaveToNobody(e)
		} else {
			t.giveUp(e)
		}
		left = append(left, e)
	}
	t.forgetCaller(c)
	return left, isSerial
}

// ErrLeft is ErrOver for one client: it was detached. It says nothing about the
// session.
var ErrLeft = fmt.Errorf("%w for a client that has left", ErrOver)

// ErrOver reports that the session was over, or the client detached, before the
// session took a message.
var ErrOver = errors.New("the session is over")

// Callers returns the number of clients on the session.
func (s *Session) Callers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.callers)
}

// Forward sends a client's notification or response to the server, without waiting for
// the server, or drops it. Send and Cancel are for requests.
func (c *Caller) Forward(m *jsonrpc.Message) {
	s := c.session
	switch {
	case s.opts.Shared && !m.Certain():
		s.dropMessage(metrics.DroppedShared, "message that can be read in two ways", m)
	case m.Kind == jsonrpc.Notification && s.opts.Shared:
		// The server would apply it to all clients (roots/list_changed), has had it
		// already (initialized), has not asked the client (progress), or may do anything.
		s.dropMessage(metrics.DroppedShared, "notification that a shared session does not take", m)
	case m.Method == mcp.MethodProgress:
		s.forwardProgress(m)
	case m.Kind == jsonrpc.Notification:
		s.passNotification(m, m.Raw())
	default:
		s.forwardResponse(m)
	}
}

// forwardProgress passes a client's progress on a request of the server to the
// server.
func (s *Session) forwardProgress(m *jsonrpc.Message) {
	var call *serverCall
	s.withLock(func(*table) { call = s.calls.open[jsonrpc.ID(m.Token.Value)] })
	data := m.Raw()
	if call != nil && call.token != nil && !m.Token.Ambiguous {
		data = m.WithValue(m.Token, call.token)
	}
	s.passNotification(m, data)
}

// Cancel passes the client's cancellation m of the request r on, under the id that the
// server knows. The server answers the request, or the gateway does after cancelGrace. r is
// nil if the client has no such request: then Cancel drops m.
func (c *Caller) Cancel(r *connstate.Request, m *jsonrpc.Message) {
	s := c.session
	if s.opts.Shared && !m.Certain() {
		s.dropMessage(metrics.DroppedShared, "message that can be read in two ways", m)
		return
	}
	var e *entry
	var sent bool
	if !m.RequestID.Ambiguous {
		e, sent = c.cancel(r)
	}
	switch {
	case e == nil:
		s.dropMessage(metrics.DroppedUnknownRequest, "cancellation names no request in flight", m)
	case !sent:
		e.failCanceled()
		s.sendNext()
	default: // if it cannot be sent, cancelGrace ends the request
		s.passNotification(m, m.WithValue(m.RequestID, json.RawMessage(jsonrpc.NumberID(e.id))))
	}
}

// cancel is the locked step of Cancel. It returns nil if the session does not have the
// request or the client may not cancel it. It removes a request that was not sent.
func (c *Caller) cancel(r *connstate.Request) (e *entry, sent bool) {
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()
	e = c.findLocked(r)
	if e == nil || e.isCanceled() || e.method == mcp.MethodInitialize { // initialize must not be cancelled
		return nil, false
	}
	e.move(cancels)
	if e.sent() {
		e.setDue(time.Now().Add(cancelGrace))
		return e, true
	}
	s.table.remove(e)
	return e, false
}

// Has reports whether the session has the request, unanswered.
func (c *Caller) Has(r *connstate.Request) bool {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.findLocked(r) != nil
}

// findLocked returns the entry of a request, nil if there is none.
func (c *Caller) findLocked(r *connstate.Request) *entry {
	if r != nil {
		for _, e := range c.session.table.byID {
			if e.request == r {
				return e
			}
		}
	}
	return nil
}

// passNotification sends a client's notification m as data to the server.
func (s *Session) passNotification(m *jsonrpc.Message, data []byte) {
	s.withLock((*table).noteNotice)
	s.passData(m, data)
}

// Awaits reports whether the server awaits the client's answer to a request of its own.
func (c *Caller) Awaits(id jsonrpc.ID) bool {
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls.open[id] != nil
}

// forwardResponse passes a client's response to the server.
func (s *Session) forwardResponse(m *jsonrpc.Message) {
	call := s.takeCall(func(call *serverCall) bool { return call.ours == m.ID })
	if call == nil {
		s.dropMessage(metrics.DroppedUnknownResponse, "response answers no request of the server", m)
		return
	}
	s.passData(m, m.WithID(call.id))
}

// passData sends data, which was made from m, to the server.
func (s *Session) passData(m *jsonrpc.Message, data []byte) {
	if err := s.conn.Send(data); err != nil { // the reader notices a lost session
		s.dropMessage(metrics.DroppedNotReady, m.Kind.String()+" was not sent", m)
	}
}
