package multiplex

import (
	"slices"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// maxQueueBytes bounds the waiting requests of a session, in bytes; a larger request
// waits alone.
const maxQueueBytes = 8 << 20

// queue holds the waiting requests: those that the server has no room for, because
// of MaxInFlight, and those behind another request with the same key. Requests of a shared
// session have the same key if they set the same thing, such as the log level or the
// subscription to one resource. They go one after the other, because whether the server
// must see one depends on its answer to the one before. Guarded by Session.mu.
type queue struct {
	waiting []*entry // oldest first
	bytes   int      // of the waiting requests
	busy    map[string]*entry
}

// add appends a request.
func (q *queue) add(e *entry) {
	q.waiting = append(q.waiting, e)
	q.bytes += len(e.message.Raw())
}

// remove takes a request out of the queue, if it is there.
func (q *queue) remove(e *entry) {
	if i := slices.Index(q.waiting, e); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.bytes -= len(e.message.Raw())
	}
}

// setKey notes what a request of a shared session sets.
func (q *queue) setKey(e *entry) {
	switch e.method {
	case mcp.MethodSetLevel:
		e.key = e.method
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		e.key = "uri " + e.uri
	}
	if q.busy == nil {
		q.busy = make(map[string]*entry)
	}
}

// decision is what to do with a request.
type decision uint8

const (
	forward   decision = iota // send it to the server
	wait                      // it is in the queue
	confirm                   // answer it: what it sets is set already
	queueFull                 // refuse it
	forbid                    // refuse it: the client may not make it
)

// enter decides what to do with a request that was just added to the table. It removes
// those that are neither forwarded nor queued.
func (t *table) enter(e *entry) decision {
	if t.opts.Shared {
		switch e.method {
		case mcp.MethodGetTask, mcp.MethodTaskResult, mcp.MethodCancelTask, mcp.MethodUpdateTask:
			if !t.shared.tasks.Find(e.task).OwnedBy(e.caller, e.caller.principal) {
				t.remove(e)
				return forbid
			}
		}
		t.queue.setKey(e)
	}
	size := len(e.message.Raw())
	switch {
	case t.mayGo(e) && t.nextReady() < 0: // nobody waits that could go before it
		return t.decide(e)
	case len(t.queue.waiting) >= t.opts.MaxWaiting, t.queue.bytes > 0 && t.queue.bytes+size > maxQueueBytes:
		t.remove(e)
		return queueFull
	}
	t.queue.add(e)
	return wait
}

// mayGo reports whether the server has room for a request, and has none with the same
// key.
func (t *table) mayGo(e *entry) bool {
	return (t.opts.MaxInFlight <= 0 || t.inFlight < t.opts.MaxInFlight) && (e.key == "" || t.queue.busy[e.key] == nil)
}

// nextReady returns the index in the queue of the oldest request that may go; -1: none.
func (t *table) nextReady() int { return slices.IndexFunc(t.queue.waiting, t.mayGo) }

// decide decides what to do with a request whose turn it is. It removes one that the
// server does not get.
func (t *table) decide(e *entry) decision {
	d := forward
	if e.key != "" {
		d = t.shared.decide(e)
	}
	if d != forward {
		t.remove(e)
	}
	return d
}

// next removes the oldest request that may go from the queue, and decides what to do with
// it. It returns nil if there is none.
func (t *table) next() (*entry, decision) {
	i := t.nextReady()
	if i < 0 {
		return nil, wait
	}
	e := t.queue.waiting[i]
	t.queue.remove(e)
	return e, t.decide(e)
}

// addOwn queues a request of the gateway that tells the server what the remaining
// clients want. Nobody waits for its answer.
func (t *table) addOwn(method, params, uri string) {
	m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, []byte(params)))
	if err != nil { // it is valid
		return
	}
	e := &entry{method: method, message: m, counted: true, uri: uri}
	t.add(e, t.opts.RequestTimeout)
	t.queue.setKey(e)
	t.queue.add(e)
}
