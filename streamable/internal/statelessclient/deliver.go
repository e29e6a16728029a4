package statelessclient

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex/sharing"
)

// deliver takes an event of the connection. It does not block.
func (l *link) deliver(e connstate.Event) {
	if e.Answer {
		l.answered(e.Related, e.Data)
		return
	}
	m, err := jsonrpc.Parse(e.Data)
	switch {
	case err != nil:
		l.h.opts.Metrics.Dropped(metrics.DroppedInvalidMessage)
	case m.Kind == jsonrpc.Request:
		l.asked(e.Related, m)
	case m.Kind == jsonrpc.Notification:
		l.notified(e.Related, m)
	}
}

// notified takes a notification of the server.
func (l *link) notified(related jsonrpc.ID, m *jsonrpc.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m.Method {
	case mcp.MethodCancelled:
		id, _ := jsonrpc.Member(m.Params(), "requestId")
		l.withdrawnLocked(jsonrpc.ID(id))
	case mcp.MethodLogMessage:
		l.loggedLocked(l.callLocked(related), m)
	case mcp.MethodToolsChanged, mcp.MethodPromptsChanged, mcp.MethodResourcesChanged, mcp.MethodResourceUpdated:
		l.changedLocked(m)
	case mcp.MethodElicitationComplete, mcp.MethodTaskStatus: // this version has neither
	default:
		l.noteLocked(l.calls[related], m)
	}
}

// callLocked returns the call that a message belongs to. Over stdio nobody knows which that
// is, unless there is only one; nil then.
func (l *link) callLocked(related jsonrpc.ID) (only *call) {
	if related != "" {
		return l.calls[related]
	}
	for _, k := range l.calls {
		switch {
		case k.own:
		case only != nil:
			return nil
		default:
			only = k
		}
	}
	return only
}

// loggedLocked passes a log message to a call that wants its level.
func (l *link) loggedLocked(k *call, m *jsonrpc.Message) {
	raw, _ := jsonrpc.Member(m.Params(), "level")
	name, _ := jsonrpc.Text(raw)
	if k == nil || k.level != 0 && sharing.ParseLevel(name) >= k.level {
		l.noteLocked(k, m)
	}
}

// noteLocked passes a notification to the client of a call, unless too many wait for it.
func (l *link) noteLocked(k *call, m *jsonrpc.Message) {
	switch {
	case k == nil || k.own || k.cancelled || k.answer != nil:
		l.h.opts.Metrics.Dropped(metrics.DroppedUnattributed)
	case k.queued > 0 && k.queued+len(m.Raw()) > maxQueued:
		l.h.opts.Metrics.Dropped(metrics.DroppedUndelivered)
	default:
		k.notes = append(k.notes, m.Raw())
		l.hold(&k.queued, len(m.Raw()))
		k.signal()
	}
}

// asked takes a request of the server. It refuses one that belongs to no call, and one
// that the client has not declared to answer.
func (l *link) asked(related jsonrpc.ID, m *jsonrpc.Message) {
	l.mu.Lock()
	k := l.exclusive
	if related != "" {
		k = l.calls[related]
	}
	declared := mcp.Answers(l.caps, m.Method, m.Params())
	if !declared {
		l.lackLocked(k, m)
	}
	if k == nil || !k.asks || k.cancelled || len(k.open) >= stateless.MaxInputs || !declared {
		l.mu.Unlock()
		l.h.opts.Metrics.Dropped(metrics.DroppedUnknownRequest)
		l.post(jsonrpc.NewError(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no request of the client may be asked %.64s now", m.Method)), nil)
		return
	}
	k.asked++
	a := &ask{id: m.ID, key: k.askKey(m), request: stateless.InputRequest(m.Method, m.Params())}
	given, ok := k.given[a.key]
	if !ok {
		k.open = append(k.open, a)
		k.lastAsk = time.Now()
		k.signal()
	}
	l.mu.Unlock()
	if ok {
		l.post(jsonrpc.NewResult(a.id, given), nil)
	}
}

// askKey returns the client's name for a request of the server: the one that a server of
// this version has given it, else one that is the same when the call is repeated.
func (k *call) askKey(m *jsonrpc.Message) string {
	raw, _ := jsonrpc.Member(m.Params(), "_meta", mcp.InputKeys)
	key, ok := jsonrpc.Text(raw)
	if ok && len(key) <= maxKey && !slices.ContainsFunc(k.open, func(a *ask) bool { return a.key == key }) {
		return key
	}
	name, _, _ := strings.Cut(m.Method, "/")
	return name + "-" + strconv.Itoa(k.asked)
}

// lackLocked notes that the client cannot be asked m for want of a capability: for the call
// k, or for each that may have asked if that is unknown.
func (l *link) lackLocked(k *call, m *jsonrpc.Message) {
	required := mcp.Required(m.Method, m.Params())
	if required == nil {
		return
	}
	if k != nil {
		k.lacking = required
		return
	}
	for _, k := range l.calls {
		if stateless.AsksInput(k.method) {
			k.lacking = required
		}
	}
}

// refuseAsk answers a request of the server that no client will answer.
func (l *link) refuseAsk(id jsonrpc.ID, why string) {
	l.post(jsonrpc.NewError(id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", why)), nil)
}

// withdrawnLocked removes a request that the server has cancelled.
func (l *link) withdrawnLocked(id jsonrpc.ID) {
	for _, k := range l.calls {
		k.open = slices.DeleteFunc(k.open, func(a *ask) bool { return a.id == id })
		k.signal()
	}
}

// changedLocked passes what has changed to the listeners that want to know.
func (l *link) changedLocked(m *jsonrpc.Message) {
	if m.Method == mcp.MethodResourceUpdated {
		raw, _ := jsonrpc.Member(m.Params(), "uri")
		uri, _ := jsonrpc.Text(raw)
		for _, s := range l.resources.Updated(uri) {
			l.tellLocked(s, m)
		}
		return
	}
	if m.Method == mcp.MethodToolsChanged {
		l.group.tools.Forget()
	}
	for s := range l.listeners {
		if slices.Contains(s.lists.Lists(), m.Method) {
			l.tellLocked(s, m)
		}
	}
}

// tellLocked queues a notification for a listener. It ends the stream of one that does not
// read: it would miss a change, and listening again shows it what it has missed.
func (l *link) tellLocked(s *listener, m *jsonrpc.Message) {
	if _, ok := l.listeners[s]; !ok {
		return // it is gone, but for its subscriptions
	}
	note := stateless.Mark(m, json.RawMessage(s.id))
	if s.queued > 0 && s.queued+len(note) > maxQueued {
		l.h.opts.Metrics.Dropped(metrics.DroppedUndelivered)
		s.end()
		return
	}
	s.notes = append(s.notes, note)
	l.hold(&s.queued, len(note))
	s.signal()
}
