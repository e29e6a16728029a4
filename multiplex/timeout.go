package multiplex

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/deadline"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// cancelGrace is how long the server may take to answer a request that its client
// has cancelled. Then the gateway answers it.
const cancelGrace = 2 * time.Second

// expiring is something with a deadline. Once that has passed, the session calls
// expireLocked, then, without the lock, the function that it returned, if any.
type expiring interface{ expireLocked(s *Session) func() }

// timed is embedded in types with a deadline. Guarded by Session.mu.
type timed = deadline.Entry[expiring]

// expireDue expires everything due. The timer of the deadlines calls it.
func (s *Session) expireDue() {
	for _, f := range s.takeDue() {
		f()
	}
	s.sendNext()
}

// takeDue is the locked step of expireDue. It returns the functions to call.
func (s *Session) takeDue() (after []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.table.deadlines.Due() {
		if f := t.Owner.expireLocked(s); f != nil {
			after = append(after, f)
		}
	}
	return after
}

// expireLocked gives up a request whose time is up.
func (p *pending) expireLocked(s *Session) func() {
	t := &s.table
	// While its client has to answer the server, a request gets more time: a call that
	// needs a form must not fail because a person fills it in slowly.
	if p.sent && !p.canceled && p.caller != nil && p.caller.openCalls > 0 && t.extend(p) {
		return nil
	}
	if p.isHangPing() {
		return s.missPing(p)
	}
	t.abandon(p)
	suspected := p.sent && !p.canceled && s.err == nil && t.suspect()
	return func() {
		if suspected {
			s.log.Warn("server may hang")
		}
		s.giveUp(p)
	}
}

// missPing is expireLocked for the ping to a server that may hang.
func (s *Session) missPing(p *pending) func() {
	t := &s.table
	if t.prolongPing(p) {
		return nil
	}
	t.abandon(p)
	if !t.noteMissedPing() {
		return nil
	}
	return s.closeHung
}

// giveUp fails a request that the server has not answered, and cancels it at the
// server.
func (s *Session) giveUp(p *pending) {
	if p.canceled {
		p.failCanceled()
		return
	}
	if p.sent {
		s.sendCancelled(p, "the gateway's request timeout")
	}
	p.fail(jsonrpc.ReasonError(s.limitOf(p), "timeout", !p.sent || p.safe), metrics.ErrorTimeout)
}

// limitOf says which limit a request has reached.
func (s *Session) limitOf(p *pending) string {
	took := s.table.deadlines.Now() - p.started
	switch {
	case !p.sent:
		return fmt.Sprintf("the request waited in the queue for %s", took.Round(time.Millisecond))
	case !p.progressed && !p.mayBlock():
		return "the server did not answer in " + s.opts.RequestTimeout.String()
	case took < s.opts.MaxRequestTimeout:
		return fmt.Sprintf("the server has reported no progress for %s", s.opts.RequestTimeout)
	}
	return "the server did not answer in " + s.opts.MaxRequestTimeout.String()
}

func (p *pending) failCanceled() {
	p.fail(jsonrpc.ReasonError("the request was cancelled by the client", "cancelled", !p.sent || p.safe), metrics.ErrorCanceled)
}

// sendCancelled cancels a request at the server, except initialize, which must not
// be cancelled.
func (s *Session) sendCancelled(p *pending, reason string) {
	if p.method == mcp.MethodInitialize {
		return
	}
	params, _ := json.Marshal(struct { // numbers and strings always have a JSON form
		RequestID int64  `json:"requestId"`
		Reason    string `json:"reason"`
	}{p.id, reason})
	_ = s.Notify(mcp.MethodCancelled, params) // best effort: the client gets its answer anyway
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
	at, certain := m.Param("requestId")
	var p *pending
	if r != nil && certain {
		p = s.cancel(c, r)
	}
	switch {
	case p == nil:
		s.drop(metrics.DroppedUnknownRequest, "cancellation names no request in flight", m)
	case !p.sent:
		p.failCanceled()
		s.sendNext()
	default:
		s.passToServer(m, m.WithValue(at, json.RawMessage(wireID(p.id)))) // if it cannot be sent, cancelGrace ends the request
	}
}

// cancel is the locked step of forwardCancel. It returns nil if the client has no
// such request or may not cancel it. It removes a request that was not sent.
func (s *Session) cancel(c *Caller, r *connstate.Request) *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.table
	p := c.findLocked(r)
	if p == nil || p.canceled || p.method == mcp.MethodInitialize { // initialize must not be cancelled
		return nil
	}
	p.canceled = true
	if p.sent {
		t.hang.unexpect(t.deadlines.Now())
		t.deadlines.Put(&p.timed, p, t.deadlines.Now()+cancelGrace)
	} else {
		t.remove(p)
	}
	return p
}
