package multiplex

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// cancelGrace is how long the server may still answer a request after the
// client has taken it back, before the gateway answers it.
const cancelGrace = 2 * time.Second

// expire answers a request whose time is up, and takes it back at the server.
func (p *pending) expire(s *Session) {
	s.mu.Lock()
	if s.prolongedLocked(p) || p.index != 0 || !s.removeLocked(p) { // it has got more time, or is over
		s.mu.Unlock()
		return
	}
	var suspected, hung bool
	if p.sent {
		s.abandonLocked(p.id)
	}
	switch {
	case p.probes():
		hung = s.pingMissedLocked()
	case p.sent:
		suspected = s.suspectLocked()
	}
	s.mu.Unlock()
	if suspected {
		s.opts.Metrics.HangSuspected()
		s.opts.Logger.Warn("server may hang")
	}
	s.giveUp(p)
	if hung {
		s.hung()
		return
	}
	s.next()
}

// prolongedLocked gives a request more time while its client has to answer the
// server: a person who fills in a form must not make the call fail that needs it.
func (s *Session) prolongedLocked(p *pending) bool {
	most := p.started + s.opts.MaxRequestTimeout
	if p.index != 0 || s.pending[p.id] != p || !p.sent || p.canceled || p.port == nil || p.port.asked == 0 || s.now() >= most {
		return false
	}
	s.deadlineLocked(&p.timed, p, min(s.now()+s.opts.RequestTimeout, most))
	return true
}

// giveUp answers a request that has been taken out of the table, without an answer
// of the server.
func (s *Session) giveUp(p *pending) {
	if p.canceled {
		s.fail(p, canceledError(p), metrics.ErrorCanceled)
		return
	}
	if p.sent && !p.probes() {
		s.tellCancelled(p, "the gateway's request timeout")
	}
	s.fail(p, ReasonError(s.tooSlow(p), "timeout", !p.sent || p.safe), metrics.ErrorTimeout)
}

// tooSlow says which limit a request has come to.
func (s *Session) tooSlow(p *pending) string {
	switch {
	case !p.sent:
		return fmt.Sprintf("the request waited for its turn for %s", (s.now() - p.started).Round(time.Millisecond))
	case !p.progressed && !blocks(p):
		return "the server did not answer in " + s.opts.RequestTimeout.String()
	case s.now()-p.started < s.opts.MaxRequestTimeout:
		return fmt.Sprintf("the server has reported no progress for %s", s.opts.RequestTimeout)
	}
	return "the server did not answer in " + s.opts.MaxRequestTimeout.String()
}

func canceledError(p *pending) *jsonrpc.Error {
	return ReasonError("the request was cancelled by the client", "cancelled", !p.sent || p.safe)
}

// tellCancelled takes a request back at the server, except for initialize, for
// which that is not allowed.
func (s *Session) tellCancelled(p *pending, reason string) {
	if p.method == methodInitialize {
		return
	}
	params, _ := json.Marshal(struct { // numbers and strings always have a JSON form
		RequestID int64  `json:"requestId"`
		Reason    string `json:"reason"`
	}{p.id, reason})
	s.telling()
	_ = s.conn.Send(jsonrpc.NewNotification(MethodCancelled, params)) // best effort: the client has its answer
}

// cancel passes a client's cancellation on, with the id that the server knows.
// The request is answered by the server, or soon by the gateway.
func (t *Port) cancel(m *jsonrpc.Message) {
	s := t.session
	at, certain := m.Param("requestId")
	s.mu.Lock()
	p := t.findLocked(jsonrpc.ID(m.At(at)))
	if p == nil || !certain || p.canceled || p.method == methodInitialize { // initialize must not be cancelled
		s.mu.Unlock()
		s.drop(metrics.DroppedUnknownRequest, "cancellation names no request in flight", m)
		return
	}
	p.canceled = true
	if !p.sent {
		s.removeLocked(p)
		s.mu.Unlock()
		s.fail(p, canceledError(p), metrics.ErrorCanceled)
		s.next()
		return
	}
	s.deadlineLocked(&p.timed, p, s.now()+cancelGrace)
	s.mu.Unlock()
	s.pass(m, m.WithValue(at, json.RawMessage(wireID(p.id)))) // when it cannot be sent, the grace period answers
}
