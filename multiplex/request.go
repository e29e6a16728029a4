package multiplex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex/sharing"
)

// A request is checked by inspect, added to the table by enter, sent at once or by
// sendNext, and answered by receiveResponse, or by a function of timeout.go.

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

// outcome is what a Call returns.
type outcome struct {
	response *jsonrpc.Message
	err      error
}

// Call sends a request of the gateway and returns the response, which may be an
// error response. It fails when ctx ends or the session does. The request waits for no
// other.
func (s *Session) Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	return s.call(ctx, &entry{method: method}, params)
}

// Call is Session.Call on behalf of the client, for example to subscribe again on a
// new session. The session treats the request like one of the client's.
func (c *Caller) Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	return c.session.call(ctx, &entry{method: method, caller: c, counted: true}, params)
}

func (s *Session) call(ctx context.Context, e *entry, params json.RawMessage) (_ *jsonrpc.Message, err error) {
	e.reply = make(chan outcome, 1)
	if e.message, err = jsonrpc.Parse(jsonrpc.NewRequest("0", e.method, params)); err != nil {
		return nil, err
	}
	if err := s.enter(e); err != nil {
		return nil, s.callError(ctx, err)
	}
	select {
	case o := <-e.reply:
		return o.response, o.err
	case <-ctx.Done():
	}
	s.withLock(func(t *table) { t.abandon(e) })
	s.sendNext()
	return nil, ctx.Err()
}

// callError returns the error for a Call that could not be sent because of err. If
// the session is ending, it waits for that, until ctx ends, and returns the reason.
func (s *Session) callError(ctx context.Context, err error) error {
	if errors.Is(err, ErrLeft) {
		return err
	}
	select {
	case <-s.done:
		return s.Err()
	case <-ctx.Done():
		return err
	}
}

// enter puts a request into the table and sends it, queues it, or answers it. It fails
// if the session is over.
func (s *Session) enter(e *entry) error {
	if e.caller != nil {
		if fault := s.inspect(e, e.message); fault != nil {
			e.fail(fault, strconv.Itoa(fault.Code))
			return nil
		}
	}
	d, m, err := s.add(e)
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
		e.fail(busyError(err), metrics.ErrorBusy)
		return nil
	}
	return err
}

// add is the locked step of enter. m is the message of a request to forward.
func (s *Session) add(e *entry) (d decision, m *jsonrpc.Message, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.table
	switch {
	case e.caller != nil && e.caller.left:
		return wait, nil, ErrLeft
	case s.err != nil:
		return wait, nil, fmt.Errorf("%w: %w", ErrOver, s.err)
	case e.caller == nil: // a Call of the session: its context bounds it
		t.add(e, 0)
		return forward, t.markSent(e), nil
	case e.mayBlock():
		t.add(e, s.opts.MaxRequestTimeout)
	default:
		t.add(e, s.opts.RequestTimeout)
	}
	if d = t.enter(e); d == forward {
		m = t.markSent(e)
	}
	return d, m, nil
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
		err := s.send(e, m)
		switch {
		case errors.Is(err, jsonrpc.ErrBusy):
			e.fail(busyError(err), metrics.ErrorBusy)
		case err != nil: // it waited in a session that has ended
			e.lose(errors.New("the session with the server was lost"))
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
	if s.local != nil {
		err = s.local.SendRequest(m, e.id, e.tokenAt)
	} else {
		err = s.conn.Send(m.WithNumber(e.id, e.tokenAt))
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

// busyError returns the error for a request for which the server has no room.
func busyError(err error) *jsonrpc.Error {
	return jsonrpc.ReasonError(err.Error(), "server_busy", true)
}

// takeOut removes the request that find returns from the table, and sends what may
// go then. It calls find with the lock held. It returns nil if find does or if the
// request is gone; otherwise the caller must answer the request.
func (s *Session) takeOut(find func(t *table) *entry) *entry {
	s.mu.Lock()
	e := find(&s.table)
	found := e != nil && s.table.remove(e)
	s.mu.Unlock()
	if !found {
		return nil
	}
	s.sendNext()
	return e
}

// inspect records in e what its answer will need. It fails if the session does not
// allow the request.
func (s *Session) inspect(e *entry, m *jsonrpc.Message) *jsonrpc.Error {
	if s.opts.Shared && !m.Certain() {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a member's name differs from one of JSON-RPC only in case")
	}
	at, certain := m.Param("_meta", "progressToken")
	if s.opts.Shared && !certain {
		// One of them would reach the server unchanged, and may be another client's.
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta.progressToken is ambiguous")
	}
	if at.Found() {
		if len(m.At(at)) > jsonrpc.MaxIDBytes {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta.progressToken is over %d bytes", jsonrpc.MaxIDBytes)
		}
		e.tokenAt = at
		e.token = append(e.token, m.At(at)...) // a copy, so as not to keep the whole message
	}
	e.safe = s.opts.Repeatable.Safe(m)
	switch m.Method {
	case mcp.MethodListTools:
		cursor, _ := m.Param("cursor")
		e.more = cursor.Found() && string(m.At(cursor)) != "null"
	case mcp.MethodGetTask, mcp.MethodTaskResult, mcp.MethodCancelTask, mcp.MethodUpdateTask:
		id, certain := m.Param("taskId")
		e.task, _ = jsonrpc.Text(m.At(id))
		if s.opts.Shared && !certain {
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
		at, certain := m.Param("uri")
		uri, ok := jsonrpc.Text(m.At(at))
		if !ok || !certain || len(uri) > maxURI {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.uri must be one string of at most %d bytes", maxURI)
		}
		e.uri = uri
	}
	return nil
}

func wireID(id int64) jsonrpc.ID { return jsonrpc.ID(strconv.FormatInt(id, 10)) }

// numberOf returns the id of a response as a number: 0 if it has none, -1 if it is
// not an id of the session's.
func numberOf(id jsonrpc.ID) int64 {
	if id == jsonrpc.Null {
		return 0
	}
	n, ok := jsonrpc.Integer([]byte(id))
	if !ok {
		return -1
	}
	return n
}

// receiveResponse passes a response to the request that it answers.
func (s *Session) receiveResponse(m *jsonrpc.Message) {
	e, by, doubt := s.match(numberOf(m.ID), m.Error() != nil)
	s.opts.Metrics.ResponseMatched(by)
	switch {
	case e == nil:
		s.drop(metrics.DroppedUnknownResponse, "response matches no request", m)
		if doubt != "" { // its request will time out
			s.opts.Limited.Warn("answer without an id dropped", "why", doubt)
		}
		return
	case e.request != nil:
		s.served.Store(true)
		if s.opts.Logger.Enabled(context.Background(), slog.LevelDebug) { // else the attributes are not built
			s.opts.Logger.Debug("mcp transport send resolve", "connectionId", e.caller.name, "requestId", shortText(string(e.request.ID)), "matchedBy", by)
		}
	}
	e.answer(s.learn(e, m), errorType(m))
}

// match is the locked step of receiveResponse. It removes the request that a response with
// that id, from numberOf, answers. by says how it was found; doubt, why a response without
// an id was not matched. match then sends what may go.
func (s *Session) match(id int64, failed bool) (e *entry, by, doubt string) {
	s.mu.Lock()
	t := &s.table
	t.noteMessage()
	e, by = t.find(id, failed)
	switch {
	case e != nil:
		t.remove(e)
		t.shared.settle(e, failed)
	case id == 0:
		doubt = t.whyUnmatched()
	}
	more := len(t.queue.waiting) > 0
	s.mu.Unlock()
	if more {
		s.sendNext()
	}
	return e, by, doubt
}

// errorType names the outcome of a response for the metrics: "" for a result,
// metrics.ErrorTool for a tool's own error, else the JSON-RPC code.
func errorType(m *jsonrpc.Message) string {
	if raw := m.Error(); raw != nil {
		code, _ := jsonrpc.Member(raw, "code")
		return string(code)
	}
	if !bytes.Contains(m.Result(), []byte(`"isError"`)) {
		return ""
	}
	if v, _ := jsonrpc.Member(m.Result(), "isError"); string(v) == "true" {
		return metrics.ErrorTool
	}
	return ""
}

// receiveInvalid handles a message that is not valid JSON-RPC. If it is certain
// which request the message answers, that request fails. An id beside a method is
// the server's own, whatever else is wrong. A message without an id may be a log
// line on stdout.
func (s *Session) receiveInvalid(m *jsonrpc.Message, err error) {
	isCall := func() bool { _, ok := jsonrpc.Member(m.Raw(), "method"); return ok }
	if m != nil && !isCall() {
		e := s.takeOut(func(t *table) (e *entry) {
			if id := numberOf(m.ID); id != 0 || s.opts.MaxInFlight == 1 {
				e, _ = t.find(id, false)
			}
			return e
		})
		if e != nil {
			s.failUnusable(e, "the server's answer is no valid JSON-RPC response: "+err.Error())
			return
		}
	}
	s.opts.Metrics.Dropped(metrics.DroppedInvalidMessage)
	s.opts.Limited.Warn("server sent an invalid message", "err", err)
}

// failTooLong fails the request whose answer a message over the limit must be, if there is
// only one. The session ends.
func (s *Session) failTooLong() {
	s.opts.Metrics.Dropped(metrics.DroppedTooLong)
	s.opts.Limited.Warn("server sent a message over the limit")
	if e := s.takeOut((*table).onlySent); e != nil {
		s.failUnusable(e, "the server's answer is over the size limit")
	}
}

// failUnusable answers a request whose response cannot be passed on.
func (s *Session) failUnusable(e *entry, message string) {
	s.opts.Limited.Warn("server sent an unusable answer", "method", shortText(e.method), "why", message)
	e.fail(jsonrpc.ReasonError(message, "invalid_response", false), metrics.ErrorInvalid)
}
