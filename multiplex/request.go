package multiplex

import (
	"errors"
	"strconv"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// forward takes a request of a client.
func (s *Session) forward(t *Port, m *jsonrpc.Message) error {
	p := &pending{method: m.Method, port: t, client: m.ID, request: m, counted: true}
	if e := s.inspect(p, m); e != nil {
		s.fail(p, e, strconv.Itoa(e.Code))
		return nil
	}
	return s.start(p)
}

// start puts a request into the table and sends it, or has it wait.
func (s *Session) start(p *pending) error {
	s.mu.Lock()
	if s.err != nil || p.port.left {
		defer s.mu.Unlock()
		if p.port.left {
			return ErrLeft
		}
		return ErrOver
	}
	p.started = s.now()
	s.addLocked(p)
	limit := s.opts.RequestTimeout
	if blocks(p) {
		limit = s.opts.MaxRequestTimeout
	}
	s.deadlineLocked(&p.timed, p, p.started+limit)
	v := s.enterLocked(p)
	var m *jsonrpc.Message
	if v == goes {
		m = s.sentLocked(p)
	}
	s.mu.Unlock()
	return s.act(p, v, m)
}

// inspect takes from a request what is needed on its way back. It fails when the
// request cannot be made on this session.
func (s *Session) inspect(p *pending, m *jsonrpc.Message) *jsonrpc.Error {
	if s.opts.Shared && !m.Certain() {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a member stands there twice, in another case")
	}
	at, certain := m.Param("_meta", "progressToken")
	if s.opts.Shared && !certain {
		// One of them would reach the server as it is: another client's, perhaps.
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta.progressToken is ambiguous")
	}
	if at.Found() {
		p.place = at
		p.token = append(p.tokenBuf[:0], m.At(at)...)
	}
	p.safe = s.opts.Repeatable.Safe(m)
	switch m.Method {
	case methodListTools:
		cursor, _ := m.Param("cursor")
		p.more = cursor.Found() && string(m.At(cursor)) != "null"
	case methodTasksGet, methodTasksResult, methodTasksCancel, methodTasksUpdate:
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

// inspectShared is inspect for what a shared session treats otherwise.
func inspectShared(p *pending, m *jsonrpc.Message) *jsonrpc.Error {
	switch m.Method {
	case methodInitialize, methodPing, "server/discover":
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s is not for a shared session", m.Method)
	case methodSetLevel:
		if p.level, _ = levelOf(m); p.level == 0 {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.level is no log level")
		}
	case methodSubscribe, methodUnsubscribe:
		at, certain := m.Param("uri")
		uri, ok := jsonrpc.Text(m.At(at))
		if !ok || !certain || len(uri) > maxURI {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.uri must be one string of at most %d bytes", maxURI)
		}
		p.uri = uri
	}
	return nil
}

// enterLocked decides about a request that has just come.
func (s *Session) enterLocked(p *pending) verdict {
	if !s.opts.Shared {
		return s.admitLocked(p)
	}
	switch p.method {
	case methodTasksGet, methodTasksResult, methodTasksCancel, methodTasksUpdate:
		if !s.tasks.byID[p.task].ownedBy(p.port) {
			s.removeLocked(p)
			return refused
		}
	case methodSetLevel, methodSubscribe, methodUnsubscribe:
		return s.enterLaneLocked(p)
	}
	return s.admitLocked(p)
}

// send gives a request to the server. A ping that cannot be sent is missed: it
// stays in the table until its time is up, or each would make the next one.
func (s *Session) send(p *pending, m *jsonrpc.Message) error {
	err := s.conn.Send(m.WithNumber(p.id, p.place))
	if err == nil || p.probes() || !s.remove(p) {
		return nil
	}
	s.next()
	if errors.Is(err, jsonrpc.ErrBusy) {
		s.fail(p, ReasonError(jsonrpc.ErrBusy.Error(), "server_busy", true), metrics.ErrorBusy)
		return nil
	}
	return ErrOver
}

// finish answers what a client has asked.
func (s *Session) finish(p *pending, response []byte, errorType string) {
	switch {
	case p.reply != nil:
		m, err := jsonrpc.Parse(response)
		p.reply <- outcome{m, err}
	case p.port != nil:
		p.port.client.Answer(p.client, response, errorType)
	}
}

// fail answers a request with an error of ours.
func (s *Session) fail(p *pending, e *jsonrpc.Error, errorType string) {
	switch {
	case p.reply != nil:
		p.reply <- outcome{err: e}
	case p.port != nil:
		p.port.client.Fail(p.client, e, errorType)
	}
}

// lost answers a request that the session has ended under: m is the request if it
// may be made again, else nil.
func (s *Session) lost(p *pending, m *jsonrpc.Message, e *jsonrpc.Error) {
	if m == nil || p.port == nil || p.reply != nil {
		s.fail(p, e, metrics.ErrorSessionLost)
		return
	}
	p.port.client.Lost(m, e)
}
