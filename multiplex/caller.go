package multiplex

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex/sharing"
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
	// Progress is Deliver for progress of a client's request, which must not reach the client
	// after the answer.
	Progress(r *connstate.Request, message []byte)
	// Serves reports whether the client has declared that it answers such requests.
	Serves(request *jsonrpc.Message) bool
}

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
	s.mixed = s.mixed || s.inhabited && s.principal != principal
	s.principal, s.inhabited = principal, true
	s.callers = append(s.callers, c)
	return c
}

// Detach takes the client off a shared session. It cancels the client's requests at the
// server and leaves them unanswered, and ends its subscriptions. A server that does not
// name its answers is let finish: the next request waits for that. Detach is idempotent.
func (c *Caller) Detach() {
	s := c.session
	left, unnamed := s.detach(c)
	for _, e := range left {
		if e.sent() && !unnamed {
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
func (s *Session) detach(c *Caller) (left []*entry, unnamed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.table
	if c.left {
		return nil, t.unnamed
	}
	c.left = true
	s.callers = slices.DeleteFunc(slices.Clone(s.callers), func(other *Caller) bool { return other == c })
	own := make(map[int64]*entry)
	for id, e := range t.byID {
		if e.caller == c {
			own[id] = e
		}
	}
	for _, e := range oldestFirst(own) {
		if t.unnamed && e.sent() {
			t.release(e)
		} else {
			t.abandon(e)
		}
		left = append(left, e)
	}
	t.forget(c)
	return left, t.unnamed
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

// Send sends a client's request to the server, queues it, or answers it. It does not wait
// for the server. It fails with ErrOver if the session was over and has not taken the
// request, or with ErrLeft, which is an ErrOver, if the client was detached.
func (c *Caller) Send(r *connstate.Request) error {
	m := r.Message
	r.Message = nil // the entry has it as long as it may be needed
	err := c.session.enter(&entry{method: r.Method, caller: c, request: r, message: m, counted: true})
	if err != nil {
		r.Message = m
	}
	return err
}

// enter puts a request into the table and sends it, queues it, or answers it. It fails
// if the session is over.
func (s *Session) enter(e *entry) error {
	if e.caller != nil {
		if fault := s.inspect(e, e.message); fault != nil {
			e.fail(fault, strconv.Itoa(fault.Code))
			return nil
		}
		if e.request != nil && !e.safe && !e.request.Commit() {
			return nil
		}
	}
	d, m, yielded, err := s.add(e)
	for _, other := range yielded {
		s.answerUnsent(other, queueFull)
	}
	switch {
	case err != nil:
		return err
	case d != forward:
		s.answerUnsent(e, d)
		return nil
	}
	if err = s.send(e, m); err != nil {
		s.sendNext() // what waited for e
	}
	if errors.Is(err, jsonrpc.ErrBusy) {
		e.failBusy(err)
		return nil
	}
	return err
}

// add is the locked step of enter. m is the message of a request to forward, yielded are the
// requests to refuse for it.
func (s *Session) add(e *entry) (d decision, m *jsonrpc.Message, yielded []*entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.table
	switch {
	case e.caller != nil && e.caller.left:
		return wait, nil, nil, ErrLeft
	case s.err != nil:
		return wait, nil, nil, fmt.Errorf("%w: %w", ErrOver, s.err)
	case e.caller == nil && !t.unnamed: // a Call of the session: its context bounds it
		t.add(e, 0)
		return forward, t.markSent(e), nil, nil
	case e.mayBlock():
		t.add(e, s.opts.MaxRequestTimeout)
	default:
		t.add(e, s.opts.RequestTimeout)
	}
	if d, yielded = t.enter(e); d == forward {
		m = t.markSent(e)
	}
	return d, m, yielded, nil
}

// sendNext sends the waiting requests that may go.
func (s *Session) sendNext() {
	for {
		e, d, m := s.takeNext()
		switch {
		case e == nil:
			return
		case d != forward:
			s.answerUnsent(e, d)
			continue
		}
		e.request.NoteWait("queue", e.started)
		err := s.send(e, m)
		switch {
		case errors.Is(err, jsonrpc.ErrBusy):
			e.failBusy(err)
		case err != nil: // it waited in a session that has ended
			e.lose(fmt.Errorf("the session with %s was lost", s.opts.Server))
		}
	}
}

// takeNext is the locked step of sendNext. m is the message of a request to forward.
func (s *Session) takeNext() (e *entry, d decision, m *jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, wait, nil
	}
	e, d = s.table.next()
	if e != nil && d == forward {
		m = s.table.markSent(e)
	}
	return e, d, m
}

// send gives a request to the Conn. If it fails, with ErrBusy or ErrOver, the request is
// no longer in the table, and the caller must answer it. It does not fail if somebody else
// has answered it.
func (s *Session) send(e *entry, m *jsonrpc.Message) (err error) {
	out := e.request.ToServer(m)
	if s.local != nil {
		err = s.local.SendRequest(out, e.id)
	} else {
		err = s.conn.Send(out.Renumbered(jsonrpc.NumberID(e.id)))
	}
	if err == nil {
		return nil
	}
	removed := false
	s.withLock(func(t *table) { removed = t.remove(e) })
	if !removed {
		return nil
	}
	e.sentAt, e.message = time.Time{}, m
	if errors.Is(err, jsonrpc.ErrBusy) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrOver, err)
}

// answerUnsent answers a request that is not forwarded, unless it waits.
func (s *Session) answerUnsent(e *entry, d decision) {
	switch d {
	case confirm:
		e.answer(jsonrpc.NewResult(e.answerID(), []byte("{}")), "")
	case queueFull:
		why := fmt.Sprintf("over %d requests, or %d MiB of them, wait for the server", s.opts.MaxWaiting, maxQueueBytes>>20)
		e.fail(jsonrpc.ReasonError(why, "queue_full", true), metrics.ErrorBusy)
	case forbid:
		fault := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no such task")
		if e.method == mcp.MethodSubscribe {
			fault = jsonrpc.ReasonError(fmt.Sprintf("the client has %d subscriptions, or %d KiB of them", sharing.MaxSubscriptions, sharing.MaxSubscriptionBytes>>10), "too_many_subscriptions", false)
		}
		e.fail(fault, strconv.Itoa(fault.Code))
	}
}

// inspect records in e what its answer will need. It fails if the session does not
// allow the request.
func (s *Session) inspect(e *entry, m *jsonrpc.Message) *jsonrpc.Error {
	switch {
	case s.opts.Shared && !m.Certain():
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a member's name differs from one of JSON-RPC only in case")
	case s.opts.Shared && m.Token.Ambiguous:
		// One of them would reach the server unchanged, and may be another client's.
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta.progressToken is ambiguous")
	case len(m.Token.Value) > jsonrpc.MaxIDBytes:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta.progressToken is over %d bytes", jsonrpc.MaxIDBytes)
	}
	e.token = bytes.Clone(m.Token.Value) // so as not to keep the whole message
	e.safe = s.opts.Tools.Safe(m)
	switch m.Method {
	case mcp.MethodListTools:
		cursor := m.Param("cursor").Value
		e.more = cursor != nil && string(cursor) != "null"
	case mcp.MethodGetTask, mcp.MethodTaskResult, mcp.MethodCancelTask, mcp.MethodUpdateTask:
		id := m.Param("taskId")
		e.task, _ = id.Text()
		if s.opts.Shared && id.Ambiguous {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.taskId is ambiguous")
		}
	}
	if s.opts.Shared {
		return inspectShared(e, m)
	}
	return nil
}

// inspectShared is the part of inspect for shared sessions.
func inspectShared(e *entry, m *jsonrpc.Message) *jsonrpc.Error {
	switch m.Method {
	case mcp.MethodInitialize, mcp.MethodPing, mcp.MethodDiscover:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s is not for a shared session", m.Method)
	case mcp.MethodSetLevel:
		if e.level, _ = levelOf(m); e.level == 0 {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.level is not a log level")
		}
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		at := m.Param("uri")
		uri, ok := at.Text()
		if !ok || at.Ambiguous || len(uri) > maxURI {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.uri must be one string of at most %d bytes", maxURI)
		}
		e.uri = uri
	}
	return nil
}

// Forward sends a client's notification or response to the server, without waiting for
// the server, or drops it. Send and Cancel are for requests.
func (c *Caller) Forward(m *jsonrpc.Message) {
	s := c.session
	switch {
	case s.opts.Shared && !m.Certain():
		s.drop(metrics.DroppedShared, "message that can be read in two ways", m)
	case m.Kind == jsonrpc.Notification && s.opts.Shared:
		// The server would apply it to all clients (roots/list_changed), has had it
		// already (initialized), has not asked the client (progress), or may do anything.
		s.drop(metrics.DroppedShared, "notification that a shared session does not take", m)
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
		s.drop(metrics.DroppedShared, "message that can be read in two ways", m)
		return
	}
	var e *entry
	var sent bool
	if !m.RequestID.Ambiguous {
		e, sent = c.cancel(r)
	}
	switch {
	case e == nil:
		s.drop(metrics.DroppedUnknownRequest, "cancellation names no request in flight", m)
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
	if e == nil || e.canceled || e.method == mcp.MethodInitialize { // initialize must not be cancelled
		return nil, false
	}
	if e.canceled = true; e.sent() {
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
	s.pass(m, data)
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
		s.drop(metrics.DroppedUnknownResponse, "response answers no request of the server", m)
		return
	}
	s.pass(m, m.WithID(call.id))
}

// pass sends data, which was made from m, to the server.
func (s *Session) pass(m *jsonrpc.Message, data []byte) {
	if err := s.conn.Send(data); err != nil { // the reader notices a lost session
		s.drop(metrics.DroppedNotReady, m.Kind.String()+" was not sent", m)
	}
}
