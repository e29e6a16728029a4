package multiplex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// cancelGrace is how long the server may take to answer a request that its client
	// has cancelled. Then the gateway answers it.
	cancelGrace = 2 * time.Second
	// pingTimeout is how long a silent server may take to answer a ping, if it has no
	// other requests to answer.
	pingTimeout = 10 * time.Second
)

// ErrHung reports a server that sent nothing while it had a request, until that timed out,
// and then did not answer a ping.
var ErrHung = errors.New("the server hangs")

// expire gives up a request whose time is up. The request's timer calls it.
func (s *Session) expire(e *entry) {
	expired, silent := s.removeExpired(e)
	if !expired {
		return
	}
	switch {
	case e.canceled:
		e.failCanceled()
	default:
		if e.sent() {
			s.sendCancelled(e, "the gateway's request timeout")
		}
		e.fail(jsonrpc.ReasonError(s.limitOf(e), "timeout", !e.sent() || e.safe), metrics.ErrorTimeout)
	}
	s.sendNext()
	if silent {
		s.checkAlive()
	}
}

// removeExpired is the locked step of expire. It reports false if the request has more
// time or is answered, and whether the server has been silent since it got the request. A
// server that waits for a client, or for a task to end, has to be silent.
func (s *Session) removeExpired(e *entry) (expired, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.table
	switch {
	case t.byID[e.id] != e, time.Now().Before(e.due):
		return false, false
	case e.sent() && !e.canceled && e.caller != nil && e.caller.openCalls > 0 && t.extend(e):
		// The client has to answer the server first: a call that needs a form must not
		// fail because a person fills it in slowly.
		return false, false
	}
	t.abandon(e)
	silent = e.sent() && !e.canceled && t.lastMessage.Before(e.sentAt) &&
		len(s.calls.open) == 0 && t.blocked == 0 && !t.pinged
	t.pinged = t.pinged || silent
	return true, silent
}

// checkAlive pings a silent server, and ends the session if the server sends nothing for
// as long as the ping may take. A server that works on one request at a time answers the
// ping after the others that it has.
func (s *Session) checkAlive() {
	s.mu.Lock()
	wait, began := pingTimeout, time.Now()
	if s.table.out > 0 {
		wait = max(wait, s.opts.RequestTimeout)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), wait) // the end of the session ends the Call, too
	defer cancel()
	_, err := s.Call(ctx, mcp.MethodPing, nil)
	s.mu.Lock()
	s.table.pinged = false
	hangs := err != nil && s.err == nil && s.table.lastMessage.Before(began)
	s.mu.Unlock()
	if hangs {
		s.opts.Limited.Warn("server hangs")
		s.Close(fmt.Errorf("%w: it sent nothing for %s, nor an answer to a ping", ErrHung, s.opts.RequestTimeout))
	}
}

// limitOf says which limit a request has reached.
func (s *Session) limitOf(e *entry) string {
	took := time.Since(e.started)
	switch {
	case !e.sent():
		return fmt.Sprintf("the request waited in the queue for %s", took.Round(time.Millisecond))
	case !e.progressed && !e.mayBlock():
		return "the server did not answer in " + s.opts.RequestTimeout.String()
	case took < s.opts.MaxRequestTimeout:
		return fmt.Sprintf("the server has reported no progress for %s", s.opts.RequestTimeout)
	}
	return "the server did not answer in " + s.opts.MaxRequestTimeout.String()
}

func (e *entry) failCanceled() {
	e.fail(jsonrpc.ReasonError("the request was cancelled by the client", "cancelled", !e.sent() || e.safe), metrics.ErrorCanceled)
}

// sendCancelled cancels a request at the server, except initialize, which must not
// be cancelled.
func (s *Session) sendCancelled(e *entry, reason string) {
	if e.method == mcp.MethodInitialize {
		return
	}
	params, _ := json.Marshal(struct { // numbers and strings always have a JSON form
		RequestID int64  `json:"requestId"`
		Reason    string `json:"reason"`
	}{e.id, reason})
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
	var e *entry
	if r != nil && certain {
		e = c.cancel(r)
	}
	switch {
	case e == nil:
		s.drop(metrics.DroppedUnknownRequest, "cancellation names no request in flight", m)
	case !e.sent():
		e.failCanceled()
		s.sendNext()
	default:
		s.passToServer(m, m.WithValue(at, json.RawMessage(wireID(e.id)))) // if it cannot be sent, cancelGrace ends the request
	}
}

// cancel is the locked step of Cancel. It returns nil if the session does not have the
// request or the client may not cancel it. It removes a request that was not sent.
func (c *Caller) cancel(r *connstate.Request) *entry {
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range c.entries {
		if e.request != r {
			continue
		}
		if e.canceled || e.method == mcp.MethodInitialize { // initialize must not be cancelled
			return nil
		}
		if e.canceled = true; e.sent() {
			e.setDue(time.Now().Add(cancelGrace))
		} else {
			s.table.remove(e)
		}
		return e
	}
	return nil
}
