package statelessclient

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex/sharing"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// deliver takes an event of the connection. It does not block.
func (pc *pooledConn) deliver(e connstate.Event) {
	if e.Answer {
		pc.answered(e.Related, e.Data)
		return
	}
	m, err := jsonrpc.Parse(e.Data)
	switch {
	case err != nil:
		pc.h.opts.Metrics.Dropped(metrics.DroppedInvalidMessage)
	case m.Kind == jsonrpc.Request:
		pc.asked(e.Related, m)
	case m.Kind == jsonrpc.Notification:
		pc.notified(e.Related, m)
	}
}

func (pc *pooledConn) notified(related jsonrpc.ID, m *jsonrpc.Message) {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	switch m.Method {
	case mcp.MethodCancelled:
		id := jsonrpc.ID(m.Param("requestId").Value)
		for _, k := range pc.calls { // it no longer asks for that
			k.open = slices.DeleteFunc(k.open, func(a *ask) bool { return a.id == id })
		}
	case mcp.MethodLogMessage:
		name, _ := m.Param("level").Text()
		if k := pc.callLocked(related); k == nil || k.level != 0 && sharing.ParseLevel(name) >= k.level {
			pc.noteLocked(k, m)
		}
	case mcp.MethodToolsChanged, mcp.MethodPromptsChanged, mcp.MethodResourcesChanged, mcp.MethodResourceUpdated:
		pc.changedLocked(m)
	case mcp.MethodElicitationComplete, mcp.MethodTaskStatus: // this version has neither
	default:
		pc.noteLocked(pc.calls[related], m)
	}
}

// callLocked returns the call that a message belongs to; nil if that is unknown. A server on
// stdio does not say it: then it is the only call, if there is one only.
func (pc *pooledConn) callLocked(related jsonrpc.ID) *pooledCall {
	if related == "" && len(pc.calls) == 1 {
		for id := range pc.calls {
			related = id
		}
	}
	return pc.calls[related]
}

// noteLocked passes a notification to the client of a call, unless too many wait for it.
func (pc *pooledConn) noteLocked(k *pooledCall, m *jsonrpc.Message) {
	switch {
	case k == nil || k.own || k.state != callOpen:
		pc.h.opts.Metrics.Dropped(metrics.DroppedUnattributed)
	default:
		k.addLocked(m.Raw())
	}
}

// asked takes a request of the server. It refuses one that belongs to no call, and one
// that the client has not declared to answer.
func (pc *pooledConn) asked(related jsonrpc.ID, m *jsonrpc.Message) {
	declared := mcp.Answers(pc.caps, m.Method, m.Params())
	pc.mu.Lock()
	k := pc.calls[related]
	for _, other := range pc.calls {
		if related == "" && other.exclusive { // the only one that may ask
			k = other
		}
	}
	if k != nil && k.asks && k.state == callOpen && len(k.open) < stateless.MaxInputs && declared {
		k.asked++
		name, _, _ := strings.Cut(m.Method, "/")
		k.open = append(k.open, &ask{id: m.ID, key: name + "-" + strconv.Itoa(k.asked),
			request: stateless.InputRequest(m.Method, m.Params())})
		k.lastAsk = time.Now()
		k.signal()
		pc.mu.Unlock()
		return
	}
	pc.mu.Unlock()
	pc.h.opts.Metrics.Dropped(metrics.DroppedUnknownRequest)
	refusal := jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no request of the client may be asked %.64s now", m.Method)
	if required := mcp.Required(m.Method, m.Params()); required != nil && !declared {
		refusal = missingCapability(required) // a server whose call fails with it tells the client what to declare
	}
	pc.post(jsonrpc.NewError(m.ID, refusal), nil, nil)
}

// refuseAsk answers a request of the server that no client will answer.
func (pc *pooledConn) refuseAsk(id jsonrpc.ID, why string) {
	pc.post(jsonrpc.NewError(id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", why)), nil, nil)
}

// changedLocked passes what has changed to the listeners that want to know.
func (pc *pooledConn) changedLocked(m *jsonrpc.Message) {
	if m.Method == mcp.MethodResourceUpdated {
		uri, _ := m.Param("uri").Text()
		for _, k := range pc.resources.Updated(uri) {
			pc.tellLocked(k, m)
		}
		return
	}
	if m.Method == mcp.MethodToolsChanged {
		pc.group.tools.Forget()
	}
	for k, filter := range pc.listeners {
		if slices.Contains(filter.Lists(), m.Method) {
			pc.tellLocked(k, m)
		}
	}
}

// tellLocked queues a notification for a listener. It ends the stream of one that does not
// read: it would miss a change, and listening again shows it what it has missed.
func (pc *pooledConn) tellLocked(k *pooledCall, m *jsonrpc.Message) {
	if _, ok := pc.listeners[k]; !ok {
		return // the listener is being entered, or is ending: only its subscriptions are there
	}
	if !k.addLocked(stateless.Mark(m.Method, m.Params(), json.RawMessage(k.id))) {
		k.endListen()
	}
}

// signal says that there is something to take.
func (k *pooledCall) signal() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// addLocked adds a notification. It reports false if too many wait.
func (k *pooledCall) addLocked(note []byte) bool {
	if k.queued > 0 && k.queued+len(note) > maxQueued {
		k.pc.h.opts.Metrics.Dropped(metrics.DroppedUndelivered)
		return false
	}
	k.notes = append(k.notes, note)
	k.queueLocked(len(note))
	k.signal()
	return true
}

// queueLocked takes n more bytes from the budget.
func (k *pooledCall) queueLocked(n int) {
	k.queued += n
	k.pc.c.CountQueued(n)
}

// takeLocked returns the notifications that wait, and how many bytes the caller must give
// back once they are written.
func (k *pooledCall) takeLocked() (notes [][]byte, size int) {
	notes, size = k.notes, k.queued
	k.notes, k.queued = nil, 0
	return notes, size
}
