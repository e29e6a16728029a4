package multiplex

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// cancelGrace is how long the server may still answer a request after the
// client has taken it back, before the gateway answers it.
const cancelGrace = 2 * time.Second

// MethodCancelled takes a request back.
const MethodCancelled = "notifications/cancelled"

// Client is a caller on a session. Its methods are called from the reader loop
// and from timers; while Answer and Deliver wait, the session's reader does.
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
}

// Attach puts a client on the session. The name is for the logs; the principal
// is who was authenticated, empty when that is not known.
func (s *Session) Attach(c Client, name, principal string) *Port {
	p := &Port{session: s, client: c, name: name, principal: principal}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports = append(s.ports, p)
	return p
}

// Detach takes a client off the session: its requests are cancelled at the
// server and no longer answered, what the server asked it is refused, and what
// it has subscribed to ends.
func (t *Port) Detach() {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.session.ports = slices.DeleteFunc(slices.Clone(t.session.ports), func(p *Port) bool { return p == t })
}

// Call is Session.Call for a request that is made in the name of the client, as
// the subscriptions that a new session must be told: what holds for requests of
// the client holds for it.
func (t *Port) Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	return t.session.Call(ctx, method, params)
}

// ErrOver reports that the session was over before it took a message.
var ErrOver = errors.New("the session is over")

// Forward sends a client's message to the server. It does not wait for the
// server. A request is answered through the port's Client, whatever happens,
// unless Forward fails: with ErrOver, the session is over and has not taken it.
func (t *Port) Forward(m *jsonrpc.Message) error {
	switch {
	case m.Kind == jsonrpc.Request:
		return t.request(m)
	case m.Kind == jsonrpc.Response:
		t.response(m)
	case m.Method == MethodCancelled:
		t.cancel(m)
	default:
		if err := t.session.conn.Send(m.Raw()); err != nil {
			t.session.drop(metrics.DroppedNotReady, "notification was not sent", m)
		}
	}
	return nil
}

func (t *Port) request(m *jsonrpc.Message) error {
	s := t.session
	p := &pending{method: m.Method, started: time.Now(), port: t, client: m.ID}
	if s.debug() {
		s.opts.Logger.Debug("mcp POST start", "connectionId", t.name, "requestId", shortID(m.ID), "method", shortText(m.Method))
	}
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return ErrOver
	}
	if s.opts.MaxInFlight > 0 && (s.inFlight >= s.opts.MaxInFlight || len(s.waiting) > 0) {
		defer s.mu.Unlock()
		return s.waitLocked(p, m)
	}
	s.addLocked(p)
	p.sent = true
	s.inFlight++
	s.mu.Unlock()
	return s.send(p, m)
}

// addLocked puts a request into the table. From then on whoever takes it out
// answers it.
func (s *Session) addLocked(p *pending) {
	s.nextID++
	p.id = s.nextID
	s.pending[p.id] = p
	p.timer = time.AfterFunc(s.opts.RequestTimeout, func() { s.timeout(p) })
}

// waitBytes bounds the requests that wait for their turn.
const waitBytes = 8 << 20

// waitLocked has a request wait for its turn; one that is large waits alone.
func (s *Session) waitLocked(p *pending, m *jsonrpc.Message) error {
	held := 0
	for _, w := range s.waiting {
		held += len(w.request.Raw())
	}
	if held > 0 && held+len(m.Raw()) > waitBytes {
		go p.port.busy(p) // not under the lock; ends at once
		return nil
	}
	s.addLocked(p)
	p.request = m
	s.waiting = append(s.waiting, p)
	return nil
}

// busy answers a request that there is no room for.
func (t *Port) busy(p *pending) {
	t.fail(p, ReasonError(jsonrpc.ErrBusy.Error(), "server_busy", true), metrics.ErrorBusy)
}

// send gives a request to the server.
func (s *Session) send(p *pending, m *jsonrpc.Message) error {
	err := s.conn.Send(m.WithID(wireID(p.id)))
	if err == nil || !s.remove(p) {
		return nil
	}
	s.next()
	if errors.Is(err, jsonrpc.ErrBusy) {
		p.port.busy(p)
		return nil
	}
	return ErrOver
}

// next sends requests that waited for their turn.
func (s *Session) next() {
	if s.opts.MaxInFlight <= 0 {
		return
	}
	for {
		s.mu.Lock()
		if len(s.waiting) == 0 || s.inFlight >= s.opts.MaxInFlight || s.err != nil {
			s.mu.Unlock()
			return
		}
		p := s.waiting[0]
		s.waiting = s.waiting[1:]
		m := p.request
		p.sent, p.request = true, nil
		s.inFlight++
		s.mu.Unlock()
		if s.send(p, m) != nil { // it waited in a session that has ended
			p.port.fail(p, ReasonError("the session with the server was lost", "session_lost", true), metrics.ErrorSessionLost)
		}
	}
}

// timeout answers a request whose time is up, and takes it back at the server.
func (s *Session) timeout(p *pending) {
	s.mu.Lock()
	sent, canceled := p.sent, p.canceled
	if !s.removeLocked(p) {
		s.mu.Unlock()
		return
	}
	if sent {
		s.abandonLocked(p.id)
	}
	s.mu.Unlock()
	if canceled {
		p.port.fail(p, canceledError(p), metrics.ErrorCanceled)
	} else {
		if sent {
			s.tellCancelled(p, "the gateway's request timeout")
		}
		p.port.fail(p, ReasonError("the server did not answer in "+s.opts.RequestTimeout.String(), "timeout", !sent || readOnly(p.method)), metrics.ErrorTimeout)
	}
	s.next()
}

func canceledError(p *pending) *jsonrpc.Error {
	return ReasonError("the request was cancelled by the client", "cancelled", !p.sent || readOnly(p.method))
}

// tellCancelled takes a request back at the server, except for initialize, for
// which that is not allowed.
func (s *Session) tellCancelled(p *pending, reason string) {
	if p.method == "initialize" {
		return
	}
	params, _ := json.Marshal(struct { // numbers and strings always have a JSON form
		RequestID json.RawMessage `json:"requestId"`
		Reason    string          `json:"reason"`
	}{json.RawMessage(wireID(p.id)), reason})
	_ = s.conn.Send(jsonrpc.NewNotification(MethodCancelled, params)) // best effort: the client has its answer
}

// fail answers a client's request with an error of ours.
func (t *Port) fail(p *pending, e *jsonrpc.Error, errorType string) {
	t.session.opts.Logger.Debug("mcp POST failed", "connectionId", t.name, "requestId", shortID(p.client),
		"method", shortText(p.method), "duration", time.Since(p.started), "err", e)
	t.client.Fail(p.client, e, errorType)
}

// cancel passes a client's cancellation on, with the id that the server knows.
// The request is answered by the server, or soon by the gateway.
func (t *Port) cancel(m *jsonrpc.Message) {
	s := t.session
	id, _ := jsonrpc.Member(m.Params(), "requestId")
	s.mu.Lock()
	p := s.findLocked(t, jsonrpc.ID(id))
	if p == nil || p.canceled || p.method == "initialize" { // initialize must not be cancelled
		s.mu.Unlock()
		s.drop(metrics.DroppedUnknownRequest, "cancellation names no request in flight", m)
		return
	}
	p.canceled = true
	if !p.sent {
		s.removeLocked(p)
		s.mu.Unlock()
		t.fail(p, canceledError(p), metrics.ErrorCanceled)
		s.next()
		return
	}
	p.timer.Stop()
	p.timer = time.AfterFunc(cancelGrace, func() { s.timeout(p) })
	s.mu.Unlock()
	params := jsonrpc.ReplaceMember(m.Params(), json.RawMessage(wireID(p.id)), "requestId")
	_ = s.conn.Send(m.WithParams(params)) // when it cannot be sent, the grace period answers
}

func (s *Session) findLocked(t *Port, id jsonrpc.ID) *pending {
	for _, p := range s.pending {
		if p.port == t && p.client == id {
			return p
		}
	}
	return nil
}
