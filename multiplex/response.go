package multiplex

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

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

// matched is what match found.
type matched struct {
	p         *pending   // the request that the response answers; nil: none
	by        string     // how it was found, for the metrics
	why       string     // whyUnmatched, for a response without an id
	same      []*pending // requests that settleSerial gives the same error
	suspected bool       // the server was suspected to hang until now
	more      bool       // requests may be sent now
}

// match is the locked step of resolve and receiveResult. It removes the request that a response with
// that id, from numberOf, answers.
func (s *Session) match(id int64, failed bool) (r matched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.table
	r.suspected = t.noteMessage()
	r.p, r.by = t.find(id, failed)
	switch {
	case r.p != nil:
		t.remove(r.p)
		r.same = t.settleSerial(r.p, failed)
	case id == 0:
		r.why = t.whyUnmatched()
	}
	r.more = t.hasNext()
	return r
}

// resolve passes a response to the request that it answers.
func (s *Session) resolve(m *jsonrpc.Message, id int64) {
	s.settle(s.match(id, m.Error() != nil), m)
}

// receiveResult is resolve for a response that comes in parts. It makes the response
// with the id that it will have in the end.
func (s *Session) receiveResult(number int64, result, fault json.RawMessage) {
	r := s.match(number, fault != nil)
	id := wireID(number)
	if r.p != nil {
		id = r.p.answerID()
	}
	s.settle(r, jsonrpc.NewResponse(id, result, fault))
}

// settle passes a response to the request that match found for it.
func (s *Session) settle(r matched, m *jsonrpc.Message) {
	s.opts.Metrics.ResponseMatched(r.by)
	if r.suspected {
		s.trust()
	}
	if r.more {
		s.sendNext()
	}
	p := r.p
	switch {
	case p == nil:
		s.drop(metrics.DroppedUnknownResponse, "response matches no request", m)
		s.warnNameless(r.why)
	case p.reply != nil:
		p.respond(s.learn(p, m), "")
	case p.r != nil:
		s.logResolve(p, r.by)
		s.served.Store(true)
		p.respond(s.learn(p, m), errorType(m))
	}
	for _, w := range r.same {
		w.respond(m.WithID(w.answerID()), errorType(m))
	}
}

// warnNameless warns that an answer without an id was dropped. Its request will time
// out.
func (s *Session) warnNameless(doubt string) {
	if doubt != "" {
		s.log.Warn("answer without an id dropped", "why", doubt)
	}
}

// receiveInvalid handles a message that is not valid JSON-RPC. If it is certain
// which request the message answers, that request fails. An id beside a method is
// the server's own, whatever else is wrong. A message without an id may be a log
// line on stdout.
func (s *Session) receiveInvalid(m *jsonrpc.Message, err error) {
	isCall := func() bool { _, ok := jsonrpc.Member(m.Raw(), "method"); return ok }
	if m != nil && !isCall() {
		p := s.takeOut(func(t *table) (p *pending) {
			if id := numberOf(m.ID); id != 0 || s.opts.MaxInFlight == 1 {
				p, _ = t.find(id, false)
			}
			return p
		})
		if p != nil {
			s.failUnusable(p, "the server's answer is no valid JSON-RPC response: "+err.Error())
			return
		}
	}
	s.opts.Metrics.Dropped(metrics.DroppedInvalidMessage)
	s.log.Warn("server sent an invalid message", "err", err)
}

// receiveTooLong handles a message over the limit: err may hold its ends. It fails the
// request that the message answers, or refuses the server's request, if the ends show
// which that is. Otherwise nobody is to blame, and a request may time out.
func (s *Session) receiveTooLong(err error) {
	s.opts.Metrics.Dropped(metrics.DroppedTooLong)
	var m jsonrpc.Cut
	busy := false
	if e, ok := errors.AsType[*jsonrpc.TooLongError](err); ok {
		m, busy = jsonrpc.ParseCut(e.Head, e.Tail), e.Busy
	}
	switch m.Kind {
	case jsonrpc.Response:
		p := s.takeOut(func(t *table) *pending {
			p, _ := t.find(numberOf(m.ID), m.Failed)
			return p
		})
		switch {
		case p != nil && busy:
			p.fail(jsonrpc.ReasonError("the server's answer was dropped: "+budget.ErrUsedUp.Error(), "server_busy", p.safe), metrics.ErrorBusy)
			return
		case p != nil:
			s.failUnusable(p, "the server's answer is over the size limit")
			return
		}
	case jsonrpc.Request:
		s.refuse(m.ID, unreadRequest(busy))
	}
	if busy {
		s.log.Warn("server's message found no room", "kind", m.Kind.String(), "method", shortText(m.Method))
		return
	}
	s.log.Warn("server sent a message over the limit", "kind", m.Kind.String(), "method", shortText(m.Method))
}

// unreadRequest returns the error for a request of the server that was not read to its
// end, because it is over the limit or the budget is used up.
func unreadRequest(busy bool) *jsonrpc.Error {
	if busy {
		return busyError(budget.ErrUsedUp)
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the request is over the size limit")
}

// failUnusable answers a request whose response cannot be passed on.
func (s *Session) failUnusable(p *pending, message string) {
	s.log.Warn("server sent an unusable answer", "method", shortText(p.method), "why", message)
	p.fail(jsonrpc.ReasonError(message, "invalid_response", false), metrics.ErrorInvalid)
}

// drop counts a message that is thrown away, and logs why.
func (s *Session) drop(reason, why string, m *jsonrpc.Message) {
	s.opts.Metrics.Dropped(reason)
	s.log.Debug("message dropped", "why", why, "kind", m.Kind.String(), "method", shortText(m.Method))
}

// logResolve logs how a client's request was matched. Package connstate logs the
// rest of its life.
func (s *Session) logResolve(p *pending, by string) {
	if s.opts.Logger.Enabled(context.Background(), slog.LevelDebug) { // else the attributes are not built
		s.opts.Logger.Debug("mcp transport send resolve", "connectionId", p.caller.name, "requestId", shortText(string(p.r.ID)), "matchedBy", by)
	}
}

// shortText cuts a peer's text for the log to 64 bytes.
func shortText(s string) string { return s[:min(64, len(s))] }
