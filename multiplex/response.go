package multiplex

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func wireID(id int64) jsonrpc.ID { return jsonrpc.ID(strconv.FormatInt(id, 10)) }

// numberOf returns the id of a response as a number: 0 when it has none, -1 when
// it is none of ours.
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

// matched is the request that a response answers.
type matched struct {
	p         *pending   // nil: there is none
	by        string     // how it was found, for the metrics
	doubt     string     // why there is none, if there may be one
	same      []*pending // requests that ask for the same and get the same error
	suspected bool       // the server was, until now
	more      bool       // requests may be sent now
}

// match is the locked step of resolve: it removes the request that a response with
// that id, as numberOf gives it, answers.
func (s *Session) match(id int64, failed bool) (r matched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.table
	r.suspected = t.heard()
	r.p, r.by = t.find(id, failed)
	switch {
	case r.p != nil:
		t.remove(r.p)
		r.same = t.settle(r.p, failed)
	case id == 0:
		r.doubt = t.doubt()
	}
	r.more = t.hasNext()
	return r
}

// resolve gives a response to the request that it answers.
func (s *Session) resolve(m *jsonrpc.Message, id int64) {
	r := s.match(id, m.Error() != nil)
	s.opts.Metrics.ResponseMatched(r.by)
	if r.suspected {
		s.trust()
	} else if r.more {
		s.sendNext()
	}
	p := r.p
	switch {
	case p == nil:
		s.drop(metrics.DroppedUnknownResponse, "response matches no request", m)
		s.warnNameless(r.doubt)
	case p.reply != nil:
		s.learn(p, m)
		p.respond(m.WithID(wireID(p.id)), "")
	case p.caller != nil:
		s.logResolve(p, r.by)
		p.respond(s.learn(p, m), errorType(m))
	}
	for _, w := range r.same {
		w.respond(m.WithID(w.client), errorType(m))
	}
}

// NewNameless returns what Options.Nameless is by default: one warning a minute.
func NewNameless() *throttle.Line { return throttle.NewLine(time.Minute, 1) }

// warnNameless warns that an answer without an id is dropped, so that its request
// ends by its timeout.
func (s *Session) warnNameless(doubt string) {
	if doubt == "" {
		return
	}
	if suppressed, due := s.opts.Nameless.Due(); due {
		s.opts.Logger.Warn("answer without an id dropped", "why", doubt, "suppressed", suppressed)
	}
}

// receiveInvalid handles a message that is no JSON-RPC. If it is certain which
// request it answers, that one is answered. An id beside a method is one of the
// server's own, whatever else is wrong. A message without an id need not be an
// answer, but a line of a log on stdout.
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
	s.opts.Logger.Warn("server sent an invalid message", "err", err)
}

// receiveTooLong answers the request whose response was over the limit. When it is
// not certain which one that is, the session ends, because a request would wait for
// nothing. A shared session goes on, because its end would hurt every client, and
// the request has its timeout.
func (s *Session) receiveTooLong() error {
	s.opts.Metrics.Dropped(metrics.DroppedTooLong)
	open := 0
	p := s.takeOut(func(t *table) *pending {
		open = len(t.byID)
		return t.only()
	})
	switch {
	case p != nil:
		s.failUnusable(p, "the server's answer is over the size limit")
	case open > 0 && !s.opts.Shared:
		return jsonrpc.ErrTooLong
	}
	return nil
}

// failUnusable answers a request whose response cannot be passed on.
func (s *Session) failUnusable(p *pending, message string) {
	s.opts.Logger.Warn("server sent an unusable answer", "method", shortText(p.method), "why", message)
	p.fail(ReasonError(message, "invalid_response", false), metrics.ErrorInvalid)
}

// drop counts a message that is thrown away, and says why in the log.
func (s *Session) drop(reason, why string, m *jsonrpc.Message) {
	s.opts.Metrics.Dropped(reason)
	s.opts.Logger.Debug("message dropped", "why", why, "kind", m.Kind.String(), "method", shortText(m.Method))
}

// logResolve logs how a client's request was matched. The package connstate logs
// the rest of its life.
func (s *Session) logResolve(p *pending, by string) {
	if s.opts.Logger.Enabled(context.Background(), slog.LevelDebug) { // else the attributes are not built
		s.opts.Logger.Debug("mcp transport send resolve", "connectionId", p.caller.name, "requestId", shortText(string(p.client)), "matchedBy", by)
	}
}

// shortText bounds what a peer can put into a log line.
func shortText(s string) string { return s[:min(64, len(s))] }
