package connstate

import (
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// gate is the queue of the messages that wait for a session. Guarded by Connection.mu. The Handler decides
// which messages may pass, and which are refused.
type gate struct {
	queue []Queued
	bytes int // of the queued messages, without what the budget adds to each
}

// passage says how far a message has come.
type passage uint8

const (
	notPassed passage = iota // the message has not left the gate, and has not gone past it
	passed                   // the message has left the gate for a session, or has gone past it
	repeated                 // the message has passed, and goes to another session because its own was lost
)

// gateBytes bounds the queued messages of one gate, in bytes; a larger message waits
// alone.
const gateBytes = 8 << 20

// Queued is a message that waits at the gate, or has just left it.
type Queued struct {
	*Request
	since   time.Time
	timeout *time.Timer // refuses it
}

// cost returns what a message at the gate takes from the budget. BeginRequest has taken the
// bytes of a request.
func cost(m *jsonrpc.Message) int {
	if m.Kind == jsonrpc.Request {
		return 0
	}
	return len(m.Raw()) + budget.ItemCost
}

// Enqueue puts a message at the end of the gate, where it waits until [ForHandler.Next], [ForHandler.Withdraw],
// [ForHandler.Release] or its timeout: Options.GateTimeout, or Options.RestTimeout if the client hasLists. It
// fails with ErrGateFull, ErrBusy, ErrDraining or ErrClosed.
//
// There is room for Options.GateQueue messages; for a client that hasLists, and for what has been through the gate,
// for Options.MaxPending more.
func (c ForHandler) Enqueue(r *Request, hasLists bool) error {
	size, room := cost(r.Message), c.opts.GateQueue
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.passage != notPassed || hasLists { // it knows its tools, and calls as many as it likes
		room += c.opts.MaxPending
	}
	switch {
	case c.known.State == Closed:
		return ErrClosed
	case c.known.State == Draining: // nobody looks for it any more
		return ErrDraining
	case len(c.gate.queue) >= room || c.gate.bytes > 0 && c.gate.bytes+len(r.Message.Raw()) > gateBytes:
		c.opts.Metrics.GateRefused(metrics.GateFull)
		return ErrGateFull
	case r.passage != notPassed:
		c.opts.Budget.ForceReserve(size)
	case !c.opts.Budget.Reserve(size, metrics.HeldGate):
		c.opts.Metrics.GateRefused(metrics.GateBudget)
		return ErrBusy
	}
	c.enqueueLocked(len(c.gate.queue), r, time.Now(), c.gateLimit(hasLists))
	c.opts.Metrics.GateQueued()
	return nil
}

// Passed notes that a message has been through the gate, or past it: if it comes back, there is room for it.
func (c ForHandler) Passed(r *Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.passage = max(r.passage, passed)
}

// Repeat notes that a request goes to another session, because its own was lost. Repeat reports false if the request
// has done so before.
func (c ForHandler) Repeat(r *Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.passage == repeated {
		return false
	}
	r.passage = repeated
	return true
}

// enqueueLocked puts a message into the queue, for which the budget has been asked. It may wait for limit since a time.
func (c *Connection) enqueueLocked(at int, r *Request, since time.Time, limit time.Duration) {
	timeout := time.AfterFunc(limit-time.Since(since), func() {
		if c.withdraw(r, metrics.GateTimeout) {
			c.handler.Refused(r, ErrGateTimeout)
		}
	})
	c.gate.queue = slices.Insert(c.gate.queue, at, Queued{r, since, timeout})
	c.gate.bytes += len(r.Message.Raw())
}

// gateLimit returns how long a message may wait at the gate.
func (c *Connection) gateLimit(hasLists bool) time.Duration {
	if hasLists {
		return c.opts.RestTimeout
	}
	return c.opts.GateTimeout
}

// Prolong gives each message at the gate the time that messages of a client with lists have: the client has just got
// its lists.
func (c ForHandler) Prolong() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.gate.queue {
		w.timeout.Reset(c.gateLimit(true) - time.Since(w.since))
	}
}

// dequeueLocked removes and returns a message, and gives back what it took.
func (c *Connection) dequeueLocked(at int) Queued {
	queue := c.gate.queue
	w := queue[at]
	copy(queue[1:], queue[:at])
	queue[0] = Queued{}
	c.gate.queue = queue[1:]
	if len(c.gate.queue) == 0 {
		c.gate.queue = nil
	}
	w.timeout.Stop()
	c.gate.bytes -= len(w.Message.Raw())
	c.opts.Budget.Release(cost(w.Message))
	return w
}

// Queued returns the messages that wait at the gate, in their order.
func (c ForHandler) Queued() []*Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*Request
	for _, w := range c.gate.queue {
		all = append(all, w.Request)
	}
	return all
}

// Withdraw removes a request from the gate and reports whether it was there.
func (c ForHandler) Withdraw(r *Request) bool { return c.withdraw(r, metrics.GateCanceled) }

// withdraw is Withdraw for a reason of the metrics.
func (c *Connection) withdraw(r *Request, reason string) bool {
	waited, ok := c.removeFromGate(r)
	if ok {
		c.opts.Metrics.GateRejected(reason, waited)
	}
	return ok
}

// Release removes a request from the gate that is answered without a session, and reports whether it was
// there.
func (c ForHandler) Release(r *Request) bool {
	waited, ok := c.removeFromGate(r)
	if ok {
		c.opts.Metrics.GateReleased(waited)
	}
	return ok
}

// removeFromGate removes a request from the gate, and returns how long it has waited there. It reports false if it
// is not there.
func (c *Connection) removeFromGate(r *Request) (waited time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.gate.queue, func(w Queued) bool { return w.Request == r })
	if at < 0 {
		return 0, false
	}
	return time.Since(c.dequeueLocked(at).since), true
}

// Next removes and returns the oldest message at the gate; nil if none waits. The caller must hand it to a
// session and call [ForHandler.Sent], or [ForHandler.PutBack]. Its wait goes on until then.
func (c ForHandler) Next() *Queued {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.gate.queue) == 0 {
		return nil
	}
	w := c.dequeueLocked(0)
	w.passage = max(w.passage, passed)
	w.gateWait.Add(int64(time.Since(w.since)))
	return &w
}

// Sent notes that a session has taken a message of [ForHandler.Next].
func (c ForHandler) Sent(w *Queued) {
	c.opts.Metrics.GateReleased(time.Since(w.since))
	w.NoteWait("gate", w.since)
}

// PutBack returns a message of [ForHandler.Next] that no session has taken to the front of the gate, without a new
// timeout. It fails as Enqueue does.
func (c ForHandler) PutBack(w *Queued, hasLists bool) (err error) {
	waited := time.Since(w.since)
	w.gateWait.Add(-int64(waited))
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.known.State {
	case Draining:
		err = ErrDraining
	case Closed:
		err = ErrClosed
	default:
		c.opts.Budget.ForceReserve(cost(w.Message))
		c.enqueueLocked(0, w.Request, w.since, c.gateLimit(hasLists))
		return nil
	}
	c.opts.Metrics.GateRejected(metrics.GateClosed, waited)
	return err
}

// Drain moves the connection to Draining and refuses the messages at the gate. The
// returned channel is closed when no request is unanswered. Drain fails if
// the connection is closed or draining already.
func (c *Connection) Drain() (<-chan struct{}, error) {
	c.mu.Lock()
	if err := c.moveLocked(Draining); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	refused := c.drainGateLocked(metrics.GateClosed)
	drained, handler := c.drained, c.handler
	c.mu.Unlock()
	if handler != nil {
		handler.Drained()
	}
	for _, r := range refused {
		c.handler.Refused(r, ErrDraining)
	}
	if drained != nil {
		drained()
	}
	return c.Quiet(), nil
}

// TakeRefused empties the gate and returns its messages, which the caller must answer: the start for which they wait
// has failed.
func (c ForHandler) TakeRefused() []*Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drainGateLocked(metrics.GateFailed)
}

// drainGateLocked empties the gate, counts its messages under reason and returns
// them.
func (c *Connection) drainGateLocked(reason string) []*Request {
	var out []*Request
	for len(c.gate.queue) > 0 {
		w := c.dequeueLocked(0)
		c.opts.Metrics.GateRejected(reason, time.Since(w.since))
		out = append(out, w.Request)
	}
	return out
}
