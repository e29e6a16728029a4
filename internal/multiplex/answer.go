package multiplex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/details"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

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

// receiveResponse passes a response to the request that it answers. related is the id of
// the related request, empty if unknown.
func (s *Session) receiveResponse(m *jsonrpc.Message, related jsonrpc.ID) {
	detailed := m
	if plain, full, ok := details.Split(m.Raw()); ok {
		m, _ = jsonrpc.Parse(plain) // both are errors of this gateway
		detailed, _ = jsonrpc.Parse(full)
	}
	f := s.matchAndSend(m, related)
	s.opts.Metrics.ResponseMatched(f.by)
	if f.becameSerial {
		s.opts.Metrics.ServerSerialized()
		s.opts.Limited.Warn("server does not name its answers: it gets one request at a time", "id",
			clip.Short(string(m.ID)))
	}
	switch f.verdict {
	case toNamed, toOldest, toOnly:
		if f.e.caller == nil || f.e.caller.client.SeesDetails() {
			m = detailed
		}
		s.resolve(f, m)
	case failAll:
		for _, e := range f.failed {
			s.failUnusable(e, "the server's answer does not name its request, and may be that to another client's")
		}
	case endSession:
		s.dropMessage(metrics.DroppedUnknownResponse, "response may answer a request that is over", m)
		s.Close(errAmbiguous)
	case dropLate:
		s.dropMessage(metrics.DroppedUnknownResponse, "response to a request that is over", m)
	case dropNotice:
		s.dropMessage(metrics.DroppedUnknownResponse, "response to a notification", m)
	case dropNothing:
		s.dropMessage(metrics.DroppedUnknownResponse, "response, but no request is out", m)
	case dropUnclear:
		s.dropMessage(metrics.DroppedUnknownResponse, "response may be about any of several messages", m)
		s.opts.Limited.Warn("server could not read a message: it does not say which")
	case dropForeign:
		s.dropMessage(metrics.DroppedUnknownResponse, "response is not named as the server names its others", m)
	}
}

// resolve answers the request that a response was matched to.
func (s *Session) resolve(f matchResult, m *jsonrpc.Message) {
	if r := f.e.request; r != nil {
		s.served.Store(true)
		if f.by == metrics.MatchedID && s.opts.OnNamed != nil {
			s.onNamed.Do(s.opts.OnNamed)
		}
		if s.opts.OnList != nil && strings.HasSuffix(f.e.method, "/list") && m.Result() != nil {
			s.opts.OnList(m.Result())
		}
		if s.opts.Logger.Enabled(context.Background(), slog.LevelDebug) { // else the attributes are not built
			s.opts.Logger.Debug("mcp transport send resolve", "connectionId", f.e.caller.name, "requestId",
				clip.Short(string(r.ID)), "matchedBy", f.by)
		}
	}
	s.noteResponse(f.e, m)
	f.e.answer(s.forAsker(f.e, m), errorType(m))
}

// matchAndSend finds the request that a response answers, with the lock held. Then it sends the requests that may go
// now that this one is out of the table.
func (s *Session) matchAndSend(m *jsonrpc.Message, related jsonrpc.ID) matchResult {
	s.mu.Lock()
	t := &s.table
	t.lastMessage = time.Now()
	f := t.match(m, related)
	if f.e != nil {
		t.shared.settleSetting(f.e, m.Error() != nil)
	}
	more := t.queue.waiting.Len() > 0
	s.mu.Unlock()
	if more {
		s.sendNext()
	}
	return f
}

// errorType names the outcome of a response for the metrics: "" for a result,
// metrics.ErrorTool for a tool's own error, else the JSON-RPC code.
func errorType(m *jsonrpc.Message) string {
	if raw := m.Error(); raw != nil {
		code, _ := rawjson.Member(raw, "code")
		return string(code)
	}
	if !bytes.Contains(m.Result(), []byte(`"isError"`)) {
		return ""
	}
	if v, _ := rawjson.Member(m.Result(), "isError"); string(v) == "true" {
		return metrics.ErrorTool
	}
	return ""
}

// receiveInvalid handles a message that is not valid JSON-RPC. If it still names the request
// that it answers, that request fails. Anything else may be a line of a log on stdout.
func (s *Session) receiveInvalid(data []byte, err error) {
	if id, whole, ok := wire.AnsweredID(data); ok {
		e := s.takeOut(func(t *table) *entry {
			e, target := t.find(id)
			if target != namesOut || !whole && t.mayBeCut(e.id) {
				return nil
			}
			t.manner = t.manner.after(idFormOf(id, false), t.certainty.isSerial())
			t.answeredUpTo(e)
			return e
		})
		if e != nil {
			s.failUnusable(e, "the server's answer is not a valid JSON-RPC response: "+err.Error())
			return
		}
	}
	s.opts.Metrics.Dropped(metrics.DroppedInvalidMessage)
	s.opts.Limited.Warn("server sent an invalid message", "err", err)
}

// failUnusable answers a request whose response cannot be passed on.
func (s *Session) failUnusable(e *entry, message string) {
	s.opts.Limited.Warn("server sent an unusable answer", "method", clip.Short(e.method), "why", message)
	e.fail(jsonrpc.ReasonError(message, "invalid_response", false), metrics.ErrorInvalid)
}

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

// errAmbiguous ends a session whose next answers nobody could tell apart.
var errAmbiguous = errors.New("the server does not name its answers, and may still answer a request that is over")

// closeAmbiguous ends the session if a late answer to a request that was given up could be
// taken for another's. The requests that wait go to the next session.
func (s *Session) closeAmbiguous() {
	isAmbiguous := false
	s.withLock(func(t *table) { isAmbiguous = t.certainty == ambiguous })
	if isAmbiguous {
		s.Close(errAmbiguous)
	}
}

// expire gives up a request whose time is up. The request's timer calls it.
func (s *Session) expire(e *entry) {
	expired, silent := s.removeExpired(e)
	if !expired {
		return
	}
	switch {
	case e.isCanceled():
		e.failCanceled()
	default:
		if e.sent() {
			s.sendCancelled(e, "the gateway's request timeout")
		} else {
			e.request.NoteWait("queue", e.started)
		}
		e.fail(jsonrpc.ReasonError(s.limitOf(e), "timeout", !e.sent() || e.safe), metrics.ErrorTimeout)
	}
	s.closeAmbiguous()
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
	if t.byID[e.id] != e || time.Now().Before(e.due) { // it is answered already, or has more time
		return false, false
	}
	isAwaited := e.stage == atServer || e.stage == progressing
	if isAwaited && e.caller != nil && len(s.calls.open) > 0 && t.extend(e) {
		// The client has to answer the server first: a call that needs a form must not
		// fail because a person fills it in slowly.
		return false, false
	}
	t.giveUp(e)
	silent = isAwaited && t.lastMessage.Before(e.sentAt) &&
		len(s.calls.open) == 0 && t.blocked == 0 && t.pingedAt.IsZero() && !t.certainty.isSerial()
	if silent {
		t.pingedAt = time.Now()
	}
	return true, silent
}

// checkAlive pings a silent server, and ends the session if the server sends nothing for
// as long as the ping may take. A server that works on one request at a time answers the
// ping after the others that it has.
func (s *Session) checkAlive() {
	s.mu.Lock()
	wait := pingTimeout
	if s.table.out > 0 {
		wait = max(wait, s.opts.RequestTimeout)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), wait) // the end of the session ends the Call, too
	defer cancel()
	_, err := s.Call(ctx, mcp.MethodPing, nil)
	s.mu.Lock()
	hangs := err != nil && s.err == nil && s.table.lastMessage.Before(s.table.pingedAt)
	s.table.pingedAt = time.Time{}
	s.mu.Unlock()
	if hangs {
		s.opts.Limited.Warn("server hangs")
		s.Close(fmt.Errorf("%w: it sent nothing for %s, nor an answer to a ping", ErrHung, s.opts.RequestTimeout))
	}
}

// limitOf says which limit a request has reached, which option sets it, and what helps.
func (s *Session) limitOf(e *entry) string {
	took := time.Since(e.started)
	switch {
	case !e.sent():
		return fmt.Sprintf("the request waited in the queue for %s for %s", s.opts.Server, took.Round(time.Millisecond))
	case s.relays:
		return fmt.Sprintf("%s did not answer in %s (%d times request-timeout)", s.opts.Server, s.opts.RequestTimeout,
			relayFactor)
	case e.stage != progressing && !e.mayBlock():
		return fmt.Sprintf("%s did not answer in %s (request-timeout): raise that if it needs longer",
			s.opts.Server, s.opts.RequestTimeout)
	case took < s.opts.MaxRequestTimeout:
		return fmt.Sprintf("%s has reported no progress for %s (request-timeout): raise that if it needs longer",
			s.opts.Server, s.opts.RequestTimeout)
	}
	return fmt.Sprintf("%s did not answer in %s (ten times request-timeout): raise request-timeout if it needs longer",
		s.opts.Server, s.opts.MaxRequestTimeout)
}

func (e *entry) failCanceled() {
	e.fail(jsonrpc.ReasonError("the request was cancelled by the client", "cancelled", !e.sent() || e.safe),
		metrics.ErrorCanceled)
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
