package statelessclient

import (
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

func (l *link) notified(related jsonrpc.ID, m *jsonrpc.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m.Method {
	case mcp.MethodCancelled:
		id, _ := jsonrpc.Member(m.Params(), "requestId")
		l.withdrawnLocked(jsonrpc.ID(id))
	case mcp.MethodLogMessage:
		raw, _ := jsonrpc.Member(m.Params(), "level")
		name, _ := jsonrpc.Text(raw)
		if l.level != 0 && sharing.ParseLevel(name) >= l.level {
			l.noteLocked(l.callLocked(related), m)
		}
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

// noteLocked passes a notification to the client of a call, unless too many wait for it.
func (l *link) noteLocked(k *call, m *jsonrpc.Message) {
	switch {
	case k == nil || k.own || k.cancelled || k.answer != nil:
		l.h.opts.Metrics.Dropped(metrics.DroppedUnattributed)
	default:
		k.addLocked(m.Raw())
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
	defer l.mu.Unlock()
	k.asked++
	name, _, _ := strings.Cut(m.Method, "/")
	k.open = append(k.open, &ask{id: m.ID, key: name + "-" + strconv.Itoa(k.asked), request: stateless.InputRequest(m.Method, m.Params())})
	k.lastAsk = time.Now()
	k.signal()
}

// lackLocked notes that the client lacks the capability to be asked m, for the call k, or
// for each that may have asked if k is unknown.
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
		return // it has only its subscriptions yet, or still
	}
	if !s.addLocked(stateless.Mark(m.Method, m.Params(), s.id)) {
		s.end()
	}
}

// queue holds the notifications that wait for a client. link.mu guards it, but for changed.
type queue struct {
	l       *link
	changed chan struct{} // has room for one: there is something to take
	notes   [][]byte
	held    int // bytes
}

func newQueue(l *link) queue { return queue{l: l, changed: make(chan struct{}, 1)} }

// signal says that there is something to take.
func (q *queue) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// addLocked adds a notification. It reports false if too many wait.
func (q *queue) addLocked(note []byte) bool {
	if q.held > 0 && q.held+len(note) > maxQueued {
		q.l.h.opts.Metrics.Dropped(metrics.DroppedUndelivered)
		return false
	}
	q.notes = append(q.notes, note)
	q.holdLocked(len(note))
	q.signal()
	return true
}

// takeLocked returns the notifications that wait, and gives their bytes back.
func (q *queue) takeLocked() [][]byte {
	notes := q.notes
	q.notes = nil
	q.holdLocked(-q.held)
	return notes
}

// holdLocked takes n more bytes from the budget, or gives -n back.
func (q *queue) holdLocked(n int) {
	q.held += n
	q.l.c.HoldQueued(n)
}
