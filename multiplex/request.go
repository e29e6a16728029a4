package multiplex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Send sends a client's request to the server, queues it, or answers it. It does not wait
// for the server. It fails with ErrOver if the session was over and has not taken the
// request, or with ErrLeft, which is an ErrOver, if the client was detached.
func (c *Caller) Send(r *connstate.Request) error {
	m := r.Message
	p := &pending{method: r.Method, caller: c, r: r, request: m, counted: true}
	if e := c.session.inspect(p, m); e != nil {
		p.fail(e, strconv.Itoa(e.Code))
		return nil
	}
	r.Message = nil // p has it as long as it may be needed
	err := c.session.begin(p)
	if err != nil {
		r.Message = m
	}
	return err
}

// begin puts a request into the table and sends it, queues it, or answers it.
func (s *Session) begin(p *pending) error {
	v, m, err := s.enter(p)
	if err != nil {
		return err
	}
	return s.carryOut(p, v, m)
}

// enter is the locked step that adds a request to the table and decides what to do
// with it. m is the message of a request to forward. A Call of the session skips the
// queue.
func (s *Session) enter(p *pending) (v verdict, m *jsonrpc.Message, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.table
	switch {
	case p.caller != nil && p.caller.left:
		return nothing, nil, ErrLeft
	case s.err != nil:
		return nothing, nil, fmt.Errorf("%w: %w", ErrOver, s.err)
	case p.caller == nil:
		t.add(p, 0)
		return forward, t.markSent(p), nil
	}
	timeout := s.opts.RequestTimeout
	if p.mayBlock() {
		timeout = s.opts.MaxRequestTimeout
	}
	t.add(p, timeout)
	if v = t.judge(p); v == forward {
		m = t.markSent(p)
	}
	return v, m, nil
}

// takeOut removes the request that find returns from the table, and sends what may
// go then. It calls find with the lock held. It returns nil if find does or if the
// request is gone; otherwise the caller must answer the request.
func (s *Session) takeOut(find func(t *table) *pending) *pending {
	s.mu.Lock()
	p := find(&s.table)
	taken := p != nil && s.table.remove(p)
	s.mu.Unlock()
	if !taken {
		return nil
	}
	s.sendNext()
	return p
}

// inspect records in p what its answer will need. It fails if the session does not
// allow the request.
func (s *Session) inspect(p *pending, m *jsonrpc.Message) *jsonrpc.Error {
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
		p.tokenAt = at
		p.token = append(p.tokenBuf[:0], m.At(at)...)
	}
	p.safe = s.opts.Repeatable.Safe(m)
	switch m.Method {
	case mcp.MethodListTools:
		cursor, _ := m.Param("cursor")
		p.more = cursor.Found() && string(m.At(cursor)) != "null"
	case mcp.MethodGetTask, mcp.MethodTaskResult, mcp.MethodCancelTask, mcp.MethodUpdateTask:
		id, certain := m.Param("taskId")
		p.task, _ = jsonrpc.Text(m.At(id))
		if s.opts.Shared && !certain {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.taskId is ambiguous")
		}
	}
	if s.opts.Shared {
		return inspectShared(p, m)
	}
	return nil
}

// inspectShared is the part of inspect for shared sessions.
func inspectShared(p *pending, m *jsonrpc.Message) *jsonrpc.Error {
	switch m.Method {
	case mcp.MethodInitialize, mcp.MethodPing, mcp.MethodDiscover:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s is not for a shared session", m.Method)
	case mcp.MethodSetLevel:
		if p.level, _ = levelOf(m); p.level == 0 {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.level is not a log level")
		}
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		at, certain := m.Param("uri")
		uri, ok := jsonrpc.Text(m.At(at))
		if !ok || !certain || len(uri) > maxURI {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.uri must be one string of at most %d bytes", maxURI)
		}
		p.uri = uri
	}
	return nil
}

// send sends a request to the server. If the ping to a server that may hang cannot
// be sent, it stays in the table until it times out; otherwise each would cause the
// next.
func (s *Session) send(p *pending, m *jsonrpc.Message) error {
	err := s.transmit(p, m)
	if err == nil || p.isHangPing() || s.takeOut(func(*table) *pending { return p }) == nil {
		return nil
	}
	if errors.Is(err, jsonrpc.ErrBusy) {
		p.fail(busyError(err), metrics.ErrorBusy)
		return nil
	}
	return fmt.Errorf("%w: %w", ErrOver, err)
}

// transmit gives the request m of p to the Conn.
func (s *Session) transmit(p *pending, m *jsonrpc.Message) error {
	if s.sender != nil {
		return s.sender.SendRequest(m, p.id, p.tokenAt)
	}
	return s.conn.Send(m.WithNumber(p.id, p.tokenAt))
}

// Call sends a request of the gateway and returns the response, which may be an
// error response. It fails when ctx ends or the session does.
func (s *Session) Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	p := &pending{method: method, reply: make(chan outcome, 1)}
	m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, params))
	if err != nil {
		return nil, err
	}
	p.request = m
	if _, _, err := s.enter(p); err != nil {
		return nil, s.Err()
	}
	if err := s.transmit(p, m); err != nil {
		s.takeOut(func(*table) *pending { return p })
		return nil, s.sendError(ctx, err)
	}
	return s.await(ctx, p)
}

// Call is Session.Call on behalf of the client, for example to subscribe again on a
// new session. The session treats the request like one of the client's.
func (c *Caller) Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	s := c.session
	p := &pending{method: method, caller: c, reply: make(chan outcome, 1), counted: true}
	m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, params))
	if err != nil {
		return nil, err
	}
	p.request = m
	if e := s.inspect(p, m); e != nil {
		return nil, e
	}
	if err := s.begin(p); err != nil {
		return nil, s.sendError(ctx, err)
	}
	return s.await(ctx, p)
}

// await waits for the answer to a Call.
func (s *Session) await(ctx context.Context, p *pending) (*jsonrpc.Message, error) {
	select {
	case o := <-p.reply:
		return o.response, o.err
	case <-ctx.Done():
	}
	s.withLock(func(t *table) { t.abandon(p) })
	s.sendNext()
	return nil, ctx.Err()
}

// sendError returns the error for a Call that could not be sent because of err. If
// the session is ending, it waits for that, until ctx ends, and returns the reason.
func (s *Session) sendError(ctx context.Context, err error) error {
	if errors.Is(err, jsonrpc.ErrBusy) || errors.Is(err, ErrLeft) {
		return err
	}
	select {
	case <-s.done:
		return s.Err()
	case <-ctx.Done():
		return err
	}
}

// Notify sends a notification of the gateway.
func (s *Session) Notify(method string, params json.RawMessage) error {
	s.noteNotification()
	return s.conn.Send(jsonrpc.NewNotification(method, params))
}
