package multiplex

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex/sharing"
)

// maxQueueBytes bounds the waiting requests of a session, in bytes; a larger request
// waits alone.
const maxQueueBytes = 8 << 20

// queue holds the waiting requests: those that the server has no room for, because
// of MaxInFlight, and those behind another request that sets the same thing. Guarded
// by Session.mu.
type queue struct {
	list   []*pending // oldest first
	serial map[string]*serialQueue
	ready  []*serialQueue // those whose next request may go
	budget *budget.Account
	// count and bytes include the requests in serial queues.
	count, bytes int
}

// serialQueue holds the requests of a shared session that set the same thing, such
// as the log level or the subscription to one resource. They go one after the other,
// because whether the server must see one depends on its answers to those before it.
type serialQueue struct {
	key     string
	busy    *pending   // the one that the server has, or that is in queue.list
	waiting []*pending // oldest first
}

// serialQueueOf returns the serial queue for what p sets. It makes a missing one.
func (q *queue) serialQueueOf(p *pending) *serialQueue {
	key := p.method
	if p.method != mcp.MethodSetLevel {
		key = "uri " + p.uri
	}
	if found := q.serial[key]; found != nil {
		return found
	}
	if q.serial == nil {
		q.serial = make(map[string]*serialQueue)
	}
	made := &serialQueue{key: key}
	q.serial[key] = made
	return made
}

// reserve takes room for one more request. It returns wait; if there is no room, full
// or busy.
func (q *queue) reserve(p *pending, limit int) verdict {
	size := len(p.request.Raw())
	switch {
	case q.count >= limit || q.bytes > 0 && q.bytes+size > maxQueueBytes:
		return full
	case !q.budget.Take(size, metrics.HeldQueue):
		return busy
	}
	q.count++
	q.bytes += size
	return wait
}

// release frees the room of a request.
func (q *queue) release(p *pending) {
	q.count--
	q.bytes -= len(p.request.Raw())
	q.budget.Give(len(p.request.Raw()))
}

// remove takes a request that has not been sent out of the list.
func (q *queue) remove(p *pending) {
	if i := slices.Index(q.list, p); i >= 0 {
		q.list = slices.Delete(q.list, i, i+1)
		q.release(p)
	}
}

// pop removes and returns the oldest request of the list.
func (q *queue) pop() *pending {
	p := q.list[0]
	q.list[0] = nil
	q.list = q.list[1:]
	q.release(p)
	return p
}

// verdict is what to do with a request.
type verdict uint8

const (
	nothing verdict = iota
	forward         // send it to the server
	wait            // keep it: it is in the queue
	confirm         // answer it: what it sets is set already
	full            // refuse it: the queue is full
	busy            // refuse it: the process holds as many bytes as it may
	forbid          // refuse it: the client may not make it
)

// judge decides what to do with a request that was just added to the table. It
// removes those that are neither forwarded nor queued.
func (t *table) judge(p *pending) verdict {
	if t.opts.Shared {
		switch p.method {
		case mcp.MethodGetTask, mcp.MethodTaskResult, mcp.MethodCancelTask, mcp.MethodUpdateTask:
			if !t.shared.tasks.Find(p.task).OwnedBy(p.caller, p.caller.principal) {
				t.remove(p)
				return forbid
			}
		case mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
			return t.enterSerial(p)
		}
	}
	return t.enqueue(p)
}

// enqueue puts a request into the queue unless the server has room for it.
func (t *table) enqueue(p *pending) verdict {
	if len(t.queue.list) == 0 && t.hasRoom() {
		return forward
	}
	v := t.queue.reserve(p, t.opts.MaxWaiting)
	if v != wait {
		t.remove(p)
		return v
	}
	t.queue.list = append(t.queue.list, p)
	return wait
}

// hasRoom reports whether the server has room for one more request.
func (t *table) hasRoom() bool {
	return t.opts.MaxInFlight <= 0 || t.inFlight < t.opts.MaxInFlight
}

// hasNext reports whether next may return a request.
func (t *table) hasNext() bool {
	return len(t.queue.list) > 0 || len(t.queue.ready) > 0 || t.pingDue()
}

// next returns a waiting request that may go, and what to do with it; else the ping
// to a server that may hang, if one is due; else nil.
func (t *table) next() (*pending, verdict) {
	if p, v := t.nextSerial(); p != nil {
		return p, v
	}
	if len(t.queue.list) > 0 && t.hasRoom() {
		return t.queue.pop(), forward
	}
	if p := t.nextPing(); p != nil {
		return p, forward
	}
	return nil, nothing
}

// enterSerial decides what to do with a request, or queues it behind those that set
// the same thing.
func (t *table) enterSerial(p *pending) verdict {
	p.serial = t.queue.serialQueueOf(p)
	if p.serial.busy == nil && len(p.serial.waiting) == 0 {
		return t.decideSerial(p)
	}
	if v := t.queue.reserve(p, t.opts.MaxWaiting); v != wait {
		t.remove(p)
		return v
	}
	p.serial.waiting = append(p.serial.waiting, p)
	return wait
}

// decideSerial decides what to do with a request once those before it in its serial
// queue are answered.
func (t *table) decideSerial(p *pending) verdict {
	if v := t.shared.judge(p); v != forward {
		t.remove(p)
		return v
	}
	p.serial.busy = p
	return t.enqueue(p)
}

// leaveSerial takes a request that is removed from the table out of its serial
// queue. If the next one there may go, it marks the queue as ready.
func (t *table) leaveSerial(p *pending) {
	q := p.serial
	if q.busy == p {
		q.busy = nil
		if p.sent && p.method == mcp.MethodSetLevel {
			t.shared.levels.Lost() // until the answer says otherwise
		}
	}
	if i := slices.Index(q.waiting, p); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		t.queue.release(p)
	}
	switch {
	case q.busy != nil:
	case len(q.waiting) > 0:
		t.markReady(q)
	default:
		delete(t.queue.serial, q.key)
	}
}

func (t *table) markReady(q *serialQueue) {
	if !slices.Contains(t.queue.ready, q) {
		t.queue.ready = append(t.queue.ready, q)
	}
}

// nextSerial returns a request of a ready serial queue, and what to do with it.
func (t *table) nextSerial() (*pending, verdict) {
	for len(t.queue.ready) > 0 {
		q := t.queue.ready[0]
		if q.busy != nil || len(q.waiting) == 0 {
			t.queue.ready = t.queue.ready[1:]
			continue
		}
		p := q.waiting[0]
		q.waiting = slices.Delete(q.waiting, 0, 1)
		t.queue.release(p)
		if v := t.decideSerial(p); v != wait {
			return p, v
		}
	}
	return nil, nothing
}

// addOwn adds a request of the gateway that tells the server what the remaining
// clients want. Nobody waits for its answer.
func (t *table) addOwn(method, params, uri string) {
	m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, []byte(params)))
	if err != nil {
		return
	}
	p := &pending{method: method, request: m, counted: true, uri: uri}
	t.add(p, t.opts.RequestTimeout)
	p.serial = t.queue.serialQueueOf(p)
	p.serial.waiting = append(p.serial.waiting, p)
	t.queue.count++
	t.queue.bytes += len(m.Raw())
	t.queue.budget.Force(len(m.Raw()))
	t.markReady(p.serial)
}

// sendNext sends the waiting requests that may go.
func (s *Session) sendNext() {
	for {
		p, v, m := s.takeNext()
		if p == nil {
			return
		}
		if s.carryOut(p, v, m) != nil { // it waited in a session that has ended
			p.reportLost(m, jsonrpc.ReasonError("the session with the server was lost", "session_lost", true))
		}
	}
}

// takeNext is the locked step of sendNext. m is the message of a request to forward.
func (s *Session) takeNext() (p *pending, v verdict, m *jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, nothing, nil
	}
	p, v = s.table.next()
	if v == forward {
		m = s.table.markSent(p)
	}
	return p, v, m
}

// carryOut carries out a verdict. m is the message of a request to forward. It fails
// with ErrOver if the session ended before the request was sent.
func (s *Session) carryOut(p *pending, v verdict, m *jsonrpc.Message) error {
	switch v {
	case forward:
		return s.send(p, m)
	case confirm:
		p.respond(jsonrpc.NewResult(p.answerID(), []byte("{}")), "")
	case full:
		why := fmt.Sprintf("over %d requests, or %d MiB of them, wait for the server", s.opts.MaxWaiting, maxQueueBytes>>20)
		p.fail(jsonrpc.ReasonError(why, "queue_full", true), metrics.ErrorBusy)
	case busy:
		p.fail(busyError(budget.ErrUsedUp), metrics.ErrorBusy)
	case forbid:
		e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no such task")
		if p.method == mcp.MethodSubscribe {
			e = jsonrpc.ReasonError(fmt.Sprintf("the client has %d subscriptions, or %d KiB of them", sharing.MaxSubscriptions, sharing.MaxSubscriptionBytes>>10), "too_many_subscriptions", false)
		}
		p.fail(e, strconv.Itoa(e.Code))
	}
	return nil
}
