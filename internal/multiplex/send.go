package multiplex

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex/sharing"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// The way of a request to the server:
//
//	Caller.Send, Session.Call ─▶ enter ─▶ inspect: may the client send it, and what will its answer need?
//	                               ├──▶ admit: into the table; forward it, queue it, or refuse it
//	                               └──▶ send: to the Conn
//	an answer is out of the table ─▶ sendNext ─▶ takeNext: whose turn is it? ─▶ send

// Send sends a client's request to the server, queues it, or answers it. It does not wait
// for the server. It fails with ErrOver if the session was over and has not taken the
// request, or with ErrLeft, which is an ErrOver, if the client was detached.
func (c *Caller) Send(r *connstate.Request) error {
	m := r.Message
	r.Message = nil // the entry keeps it as long as it may be needed
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
	d, m, yielded, err := s.admit(e)
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
	err = s.send(e, m)
	if err != nil {
		s.sendNext() // what waited for e
	}
	if errors.Is(err, jsonrpc.ErrBusy) {
		e.failBusy(err)
		return nil
	}
	return err
}

// admit is the locked step of enter. m is the message of a request to forward, yielded are the
// requests to refuse for it.
func (s *Session) admit(e *entry) (d decision, m *jsonrpc.Message, yielded []*entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.table
	switch {
	case e.caller != nil && e.caller.left:
		return wait, nil, nil, ErrLeft
	case s.err != nil:
		return wait, nil, nil, fmt.Errorf("%w: %w", ErrOver, s.err)
	case e.caller == nil && !t.certainty.isSerial(): // a Call of the session: its context bounds it
		t.addRequest(e, 0)
		return forward, t.markSent(e), nil, nil
	case e.mayBlock():
		t.addRequest(e, s.opts.MaxRequestTimeout)
	default:
		t.addRequest(e, s.opts.RequestTimeout)
	}
	d, yielded = t.enter(e)
	if d == forward {
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
	e, d = s.table.nextTurn()
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
	e.move(bounces)
	e.message = m
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
		why := fmt.Sprintf("over %d requests, or %d MiB of them, wait for the server", s.opts.MaxWaiting,
			maxQueueBytes>>20)
		e.fail(jsonrpc.ReasonError(why, "queue_full", true), metrics.ErrorBusy)
	case forbid:
		fault := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no such task")
		if e.method == mcp.MethodSubscribe {
			fault = jsonrpc.ReasonError(fmt.Sprintf("the client has %d subscriptions, or %d KiB of them",
				sharing.MaxSubscriptions, sharing.MaxSubscriptionBytes>>10), "too_many_subscriptions", false)
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
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta.progressToken is over %d bytes",
			jsonrpc.MaxIDBytes)
	}
	e.token = bytes.Clone(m.Token.Value) // so as not to keep the whole message
	e.safe = s.tools.Safe(m)
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
		e.level, _ = levelOf(m)
		if e.level == 0 {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.level is not a log level")
		}
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		at := m.Param("uri")
		uri, ok := at.Text()
		if !ok || at.Ambiguous || len(uri) > maxURI {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.uri must be one string of at most %d bytes",
				maxURI)
		}
		e.uri = uri
	}
	return nil
}
