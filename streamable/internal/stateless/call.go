package stateless

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex/sharing"
)

// callOptions say what a call may do.
type callOptions struct {
	opening   bool // it is the connection's initialize
	own       bool // it is the handler's own
	exclusive bool // it has the connection to itself among such calls
	asks      bool // the server may ask the client something
	level     sharing.Level
}

// call is a request on a connection, from begin to its answer.
type call struct {
	callOptions
	l       *link
	id      jsonrpc.ID // on the connection
	method  string
	params  json.RawMessage
	ctx     context.Context // of the message; nil: nothing is passed on
	changed chan struct{}   // has room for one: there is something to take

	// Guarded by link.mu:
	notes     [][]byte // notifications that wait for the client
	queued    int      // their bytes, and those of an answer that waits
	answer    *jsonrpc.Message
	cancelled bool
	open      []*ask // requests of the server that are not answered
	asked     int    // requests of the server, ever
	lastAsk   time.Time
	given     map[string]json.RawMessage // answers that the client gave in advance, by key
	lacking   json.RawMessage            // capabilities for want of which the server was refused input; nil: none
}

// ask is a request of the server to the client.
type ask struct {
	id     jsonrpc.ID
	key    string // the client's name for it
	method string
	params json.RawMessage // nil: none
	shown  bool            // the client has been asked
}

// signal says that there is something to take.
func (k *call) signal() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// dropLocked drops what waits for the client.
func (k *call) dropLocked() {
	k.notes = nil
	k.l.hold(&k.queued, -k.queued)
}

// hold takes n more bytes from the budget, counted in held, or gives -n back.
func (l *link) hold(held *int, n int) {
	*held += n
	l.c.HoldQueued(n)
}

// state is what has happened to a call.
type state struct {
	notes  [][]byte
	answer *jsonrpc.Message // nil: it is not answered
	// asked says that the client must be asked, settle after that how long to wait for
	// more; 0: not at all.
	asked  bool
	settle time.Duration
}

// take returns what has happened since the last take.
func (k *call) take() state {
	k.l.mu.Lock()
	defer k.l.mu.Unlock()
	s := state{notes: k.notes, answer: k.answer}
	k.dropLocked()
	for _, a := range k.open {
		s.asked = s.asked || !a.shown
	}
	if s.asked {
		s.settle = max(0, settleTime-time.Since(k.lastAsk))
	}
	return s
}

// cancel cancels a request at the server. Its answer may still come.
func (k *call) cancel(reason string) {
	k.l.mu.Lock()
	again := k.cancelled || k.answer != nil
	k.cancelled = true
	asks := k.open
	k.open = nil
	k.dropLocked()
	k.l.mu.Unlock()
	if again {
		return
	}
	for _, a := range asks {
		k.l.refuseAsk(a.id, "the call was cancelled")
	}
	params := fmt.Appendf(nil, `{"requestId":%s,"reason":%q}`, k.id, reason)
	k.l.post(jsonrpc.NewNotification(mcp.MethodCancelled, params))
}

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

// asked takes a request of the server. It refuses one that belongs to no call, and one
// that the client has not declared to answer.
func (l *link) asked(related jsonrpc.ID, m *jsonrpc.Message) {
	l.mu.Lock()
	k := l.asker
	if related != "" {
		k = l.calls[related]
	}
	declared := mcp.Answers(l.caps, m.Method, m.Params())
	if !declared {
		l.lackLocked(k, m)
	}
	if k == nil || !k.asks || k.cancelled || len(k.open) >= maxAsks || !declared {
		l.mu.Unlock()
		l.h.opts.Metrics.Dropped(metrics.DroppedUnknownRequest)
		l.post(jsonrpc.NewError(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no request of the client may be asked %.64s now", m.Method)))
		return
	}
	k.asked++
	a := &ask{id: m.ID, key: k.askKey(m), method: m.Method, params: inputParams(m)}
	given, ok := k.given[a.key]
	if !ok {
		k.open = append(k.open, a)
		k.lastAsk = time.Now()
		k.signal()
	}
	l.mu.Unlock()
	if ok {
		l.post(jsonrpc.NewResult(a.id, given))
	}
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
		if asksInput(k.method) {
			k.lacking = required
		}
	}
}

// lacks returns the capabilities for want of which the server was refused input.
func (k *call) lacks() json.RawMessage {
	k.l.mu.Lock()
	defer k.l.mu.Unlock()
	return k.lacking
}

// maxKey bounds the keys of servers, in bytes.
const maxKey = 256

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

// inputParams returns the params of a server's request as clients of this version expect
// them: without a progress token, and without the id that a URL elicitation had.
func inputParams(m *jsonrpc.Message) json.RawMessage {
	params := m.Params()
	if m.Method == mcp.MethodElicit {
		params = jsonrpc.RemoveMember(params, "elicitationId")
	}
	return cutMeta(params, "progressToken", mcp.InputKeys)
}

// cutMeta returns params without these members of _meta, and without an empty _meta.
func cutMeta(params json.RawMessage, names ...string) json.RawMessage {
	meta, ok := jsonrpc.Member(params, "_meta")
	if !ok {
		return params
	}
	for _, name := range names {
		meta = jsonrpc.RemoveMember(meta, name)
	}
	if string(jsonrpc.Compact(meta)) == "{}" {
		return jsonrpc.RemoveMember(params, "_meta")
	}
	return jsonrpc.SetMember(params, meta, "_meta")
}

// refuseAsk answers a request of the server that no client will answer.
func (l *link) refuseAsk(id jsonrpc.ID, why string) {
	l.post(jsonrpc.NewError(id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", why)))
}

// notified takes a notification of the server.
func (l *link) notified(related jsonrpc.ID, m *jsonrpc.Message) {
	switch m.Method {
	case mcp.MethodCancelled:
		id, _ := jsonrpc.Member(m.Params(), "requestId")
		l.withdrawn(jsonrpc.ID(id))
	case mcp.MethodProgress:
		l.note(l.callOf(related), m)
	case mcp.MethodLogMessage:
		l.logged(related, m)
	case mcp.MethodToolsChanged, mcp.MethodPromptsChanged, mcp.MethodResourcesChanged, mcp.MethodResourceUpdated:
		l.changed(m)
	case mcp.MethodElicitationComplete, mcp.MethodTaskStatus: // this version has neither
	default:
		l.note(l.callOf(related), m)
	}
}

// callOf returns the call with that id, nil for none.
func (l *link) callOf(id jsonrpc.ID) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[id]
}

// note passes a notification to the client of a call, unless too many wait for it.
func (l *link) note(k *call, m *jsonrpc.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k == nil || k.own || k.cancelled || k.answer != nil {
		l.h.opts.Metrics.Dropped(metrics.DroppedUnattributed)
		return
	}
	if k.queued > 0 && k.queued+len(m.Raw()) > maxQueued {
		l.h.opts.Metrics.Dropped(metrics.DroppedUndelivered)
		return
	}
	k.notes = append(k.notes, m.Raw())
	l.hold(&k.queued, len(m.Raw()))
	k.signal()
}

// withdrawn removes a request that the server has cancelled.
func (l *link) withdrawn(id jsonrpc.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.calls {
		for i, a := range k.open {
			if a.id == id {
				k.open = append(k.open[:i:i], k.open[i+1:]...)
				k.signal()
				return
			}
		}
	}
}
