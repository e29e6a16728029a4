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

// resolve gives a response to the request that it answers. The id is 0 when it
// has none, -1 when it is none of ours.
func (s *Session) resolve(m *jsonrpc.Message, id int64) {
	var same []*pending
	s.mu.Lock()
	cleared := s.heardLocked()
	p, by := s.matchLocked(id, m.Error() != nil)
	var doubt string
	if p == nil && id == 0 {
		doubt = s.doubtLocked()
	}
	if p != nil && p.lane != nil {
		same = s.settleLocked(p, m.Error() != nil)
	}
	more := s.moreLocked()
	s.mu.Unlock()
	s.opts.Metrics.ResponseMatched(by)
	if cleared {
		s.cleared()
	} else if more {
		s.next()
	}
	if p == nil {
		s.drop(metrics.DroppedUnknownResponse, "response matches no request", m)
		s.warnNameless(doubt)
		return
	}
	s.answer(p, m, by)
	for _, w := range same {
		s.finish(w, m.WithID(w.client), ErrorType(m))
	}
}

// answer passes a response on to who waits for it.
func (s *Session) answer(p *pending, m *jsonrpc.Message, by string) {
	switch {
	case p.reply != nil:
		s.learn(p, m)
		s.finish(p, m.WithID(wireID(p.id)), "")
	case p.port != nil:
		s.logResolve(p, by)
		response := s.learn(p, m)
		p.port.client.Answer(p.client, response, ErrorType(m))
	}
}

// learn notes what a response says that matters later, and returns its bytes for
// the client.
func (s *Session) learn(p *pending, m *jsonrpc.Message) []byte {
	result := m.Result()
	switch {
	case p.port == nil:
	case result == nil:
		s.learnElicitations(p.port, m.Error())
	case p.method == methodListTools:
		s.opts.Repeatable.learn(!p.more, result)
	case p.method == methodTasksList && s.opts.Shared:
		return s.ownTasks(p, m)
	case p.task != "":
		s.learnStatus(p, result)
	default:
		s.learnTask(p, result)
	}
	return m.WithID(p.client)
}

// matchLocked finds and removes the request that a response with that id answers.
// One without an id is matched when it can mean a single request only: one is out,
// none was given up, and an error is not about a notification. On a shared session
// a second answer to what it has answered would reach somebody else, so there the
// server must work on one request at a time and must never have given an id.
func (s *Session) matchLocked(id int64, failed bool) (*pending, string) {
	if id == 0 {
		p := s.onlyLocked()
		serial := s.opts.MaxInFlight == 1
		if p == nil || s.opts.Shared && (!serial || s.named) || failed && s.told > 0 && !serial {
			return nil, metrics.MatchedOrphan
		}
		s.matchedLocked(p)
		return p, metrics.MatchedFIFO
	}
	p := s.pending[id]
	if p == nil || !p.sent {
		if id > 0 {
			delete(s.abandoned, id)
		}
		return nil, metrics.MatchedOrphan
	}
	s.matchedLocked(p)
	s.named = true
	return p, metrics.MatchedID
}

func (s *Session) matchedLocked(p *pending) {
	s.removeLocked(p)
	if p.id >= s.told {
		s.told = 0
	}
}

// numberOf is the id of a response as resolve wants it.
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

// onlyLocked returns the one request that the server has, and nil when there
// are others, or may be.
func (s *Session) onlyLocked() *pending {
	var only *pending
	for _, p := range s.pending {
		if !p.sent {
			continue
		}
		if only != nil {
			return nil
		}
		only = p
	}
	if len(s.abandoned) > 0 {
		return nil
	}
	return only
}

// doubtLocked says why a response without an id was not matched; "" when no
// request can have been meant.
func (s *Session) doubtLocked() string {
	switch {
	case s.out == 0 && len(s.abandoned) == 0:
		return ""
	case s.opts.MaxInFlight != 1:
		return "several messages can be meant: run with max-in-flight 1"
	case len(s.abandoned) > 0:
		return "a request that was given up can be meant"
	}
	return "the server of a shared session has answered with ids before"
}

// namelessEvery is the least time between two warnings about answers without ids.
const namelessEvery = time.Minute

// NewNameless returns what Options.Nameless is by default.
func NewNameless() *throttle.Line { return throttle.NewLine(namelessEvery, 1) }

// warnNameless warns that an answer without an id reaches nobody: its request ends
// by its timeout.
func (s *Session) warnNameless(doubt string) {
	if doubt == "" {
		return
	}
	if suppressed, due := s.opts.Nameless.Due(); due {
		s.opts.Logger.Warn("answer without an id dropped", "why", doubt, "suppressed", suppressed)
	}
}

// invalid takes what the server sent and is no JSON-RPC. If it is certain which
// request was meant, that one is answered. An id beside a method is one of the
// server's own, whatever else is wrong. What has no id need not be an answer, but
// a line of a log on stdout.
func (s *Session) invalid(m *jsonrpc.Message, err error) {
	if m != nil && !isCall(m) {
		var p *pending
		s.mu.Lock()
		if id := numberOf(m.ID); id != 0 || s.opts.MaxInFlight == 1 {
			p, _ = s.matchLocked(id, false)
		}
		s.mu.Unlock()
		if p != nil {
			s.next()
			s.unusable(p, "the server's answer is no valid JSON-RPC response: "+err.Error())
			return
		}
	}
	s.opts.Metrics.Dropped(metrics.DroppedInvalidMessage)
	s.opts.Logger.Warn("server sent an invalid message", "err", err)
}

func isCall(m *jsonrpc.Message) bool {
	_, ok := jsonrpc.Member(m.Raw(), "method")
	return ok
}

// tooLong answers the request whose response was over the limit. When that is
// not certain the session cannot go on: someone would wait for nothing. A shared
// one goes on: the end would harm all, and who waits has its timeout.
func (s *Session) tooLong() error {
	s.opts.Metrics.Dropped(metrics.DroppedTooLong)
	s.mu.Lock()
	p := s.onlyLocked()
	waiters := len(s.pending)
	if p != nil {
		s.removeLocked(p)
	}
	s.mu.Unlock()
	switch {
	case p != nil:
		s.next()
		s.unusable(p, "the server's answer is over the size limit")
	case waiters > 0 && !s.opts.Shared:
		return jsonrpc.ErrTooLong
	}
	return nil
}

// unusable answers a request whose answer cannot be passed on.
func (s *Session) unusable(p *pending, message string) {
	s.opts.Logger.Warn("server sent an unusable answer", "method", shortText(p.method), "why", message)
	s.fail(p, ReasonError(message, "invalid_response", false), metrics.ErrorInvalid)
}

// drop counts a message that is thrown away, and says why in the log.
func (s *Session) drop(reason, why string, m *jsonrpc.Message) {
	s.opts.Metrics.Dropped(reason)
	s.opts.Logger.Debug("message dropped", "why", why, "kind", m.Kind.String(), "method", shortText(m.Method))
}

// logResolve logs how a client's request was found. The rest of its life is
// logged where it began, in connstate.
func (s *Session) logResolve(p *pending, by string) {
	if s.debug() {
		s.opts.Logger.Debug("mcp transport send resolve", "connectionId", p.port.name, "requestId", shortID(p.client), "matchedBy", by)
	}
}

// debug reports whether to build the attributes of debug lines at all.
func (s *Session) debug() bool {
	return s.opts.Logger.Enabled(context.Background(), slog.LevelDebug)
}

func shortID(id jsonrpc.ID) string { return shortText(string(id)) }

// shortText bounds what a peer can put into a log line.
func shortText(s string) string { return s[:min(64, len(s))] }
