package connstate

import (
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// gate holds the messages that wait for the session. Guarded by Connection.mu.
type gate struct {
	queue []waiting
	bytes int // of the queued messages, without what the budget adds to each
	// passing says that messages pass at once. It is true only while Ready, after the
	// last queued message has been handed over.
	passing bool
	// refusal is the error for new messages; nil: they are queued.
	refusal error
	// told is what Told has noted.
	told bool
	// opening counts the moves to Ready. By it a release notices that another move to
	// Ready has come since.
	opening int
}

// gateBytes bounds the queued messages of one gate, in bytes; a larger message waits
// alone.
const gateBytes = 8 << 20

type waiting struct {
	r     *Request
	since time.Time
	late  *time.Timer // refuses it
}

// cost returns what a message at the gate takes from the budget. Begin has taken the
// bytes of a request.
func cost(m *jsonrpc.Message) int {
	if m.Kind == jsonrpc.Request {
		return 0
	}
	return len(m.Raw()) + budget.ItemCost
}

// Admit decides what to do with a client's message. If it reports true, the caller
// must hand the message to the server now. If it reports false without an error, the
// message waits at the gate until [ForHandler.Open], [ForHandler.Withdraw], [ForHandler.Release] or its
// timeout. Otherwise the message is refused, with ErrGateFull, ErrDraining,
// ErrBusy, ErrClosed or what [ForHandler.Fail] was given.
//
// The gate has room for all unanswered requests that have been through it, within its
// bound in bytes.
func (c ForHandler) Admit(r *Request) (bool, error) {
	size, room := cost(r.Message), c.opts.GateQueue
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.passed || c.gate.told { // the client knows its tools, and calls as many as it likes
		room += c.opts.MaxPending
	}
	switch {
	case c.known.State == Closed:
		return false, ErrClosed
	case c.known.State == Draining && r.Message.Kind == jsonrpc.Request:
		return false, ErrDraining
	case c.gate.passing:
		r.passed = true
		return true, nil
	case c.gate.refusal != nil:
		c.opts.Metrics.GateRefused(metrics.GateFailed)
		return false, c.gate.refusal
	case c.known.State == Draining:
		return false, ErrDraining
	case len(c.gate.queue) >= room || c.gate.bytes > 0 && c.gate.bytes+len(r.Message.Raw()) > gateBytes:
		c.opts.Metrics.GateRefused(metrics.GateFull)
		return false, ErrGateFull
	case r.passed:
		c.opts.Budget.Force(size)
	case !c.opts.Budget.Take(size, metrics.HeldGate):
		c.opts.Metrics.GateRefused(metrics.GateBudget)
		return false, ErrBusy
	}
	c.enqueueLocked(len(c.gate.queue), r, time.Now())
	c.opts.Metrics.GateQueued()
	return false, nil
}

// Passed notes that a message has been through the gate, or past it: if it comes back, there is room for it.
func (c ForHandler) Passed(r *Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.passed = true
}

// enqueueLocked puts a message into the queue, for which the budget has been asked.
func (c *Connection) enqueueLocked(at int, r *Request, since time.Time) {
	late := time.AfterFunc(c.gateLimitLocked()-time.Since(since), func() {
		if c.withdraw(r, metrics.GateTimeout) {
			c.handler.Refused(r, ErrGateTimeout)
		}
	})
	c.gate.queue = slices.Insert(c.gate.queue, at, waiting{r, since, late})
	c.gate.bytes += len(r.Message.Raw())
}

// gateLimitLocked returns how long a message may wait at the gate.
func (c *Connection) gateLimitLocked() time.Duration {
	if c.gate.told {
		return c.opts.RestTimeout
	}
	return c.opts.GateTimeout
}

// OnMemory reports whether the client knows what is remembered of the server, and no session is there
// that says it.
func (c *Connection) OnMemory() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gate.told && (c.known.State == Resting || c.known.State == Initializing)
}

// Told notes that the client has been told what is remembered of the server, so that it knows its lists:
// its messages, also those at the gate, may wait for Options.RestTimeout, and there may be as many as at a
// session.
func (c ForHandler) Told() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gate.told {
		return
	}
	c.gate.told = true
	for _, w := range c.gate.queue {
		w.late.Reset(c.gateLimitLocked() - time.Since(w.since))
	}
}

// dequeueLocked removes and returns a message, and gives back what it took.
func (c *Connection) dequeueLocked(at int) waiting {
	queue := c.gate.queue
	w := queue[at]
	copy(queue[1:], queue[:at])
	queue[0] = waiting{}
	c.gate.queue = queue[1:]
	if len(c.gate.queue) == 0 {
		c.gate.queue = nil
	}
	w.late.Stop()
	c.gate.bytes -= len(w.r.Message.Raw())
	c.opts.Budget.Give(cost(w.r.Message))
	return w
}

// Waiting returns the messages that wait at the gate, in their order.
func (c ForHandler) Waiting() []*Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*Request
	for _, w := range c.gate.queue {
		all = append(all, w.r)
	}
	return all
}

// Withdraw removes a request from the gate and reports whether it was there.
func (c ForHandler) Withdraw(r *Request) bool { return c.withdraw(r, metrics.GateCanceled) }

// withdraw is Withdraw for a reason of the metrics.
func (c *Connection) withdraw(r *Request, reason string) bool {
	waited, ok := c.remove(r)
	if ok {
		c.opts.Metrics.GateRejected(reason, waited)
	}
	return ok
}

// Release removes a request from the gate that is answered without a session, and reports whether it was
// there.
func (c ForHandler) Release(r *Request) bool {
	waited, ok := c.remove(r)
	if ok {
		c.opts.Metrics.GateReleased(waited)
	}
	return ok
}

// remove removes a request from the gate, and returns how long it has waited there. It reports false if it
// is not there.
func (c *Connection) remove(r *Request) (waited time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.gate.queue, func(w waiting) bool { return w.r == r })
	if at < 0 {
		return 0, false
	}
	return time.Since(c.dequeueLocked(at).since), true
}

// Open moves the connection to Ready. The returned function hands the waiting
// messages to forward in the order in which they came; messages that come meanwhile
// wait behind them. It stops when the connection leaves Ready, or when forward
// reports false: then that message goes back to the front. Open fails if
// the connection cannot become ready.
func (c ForHandler) Open() (release func(forward func(*Request) bool), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.moveLocked(Ready); err != nil {
		return nil, err
	}
	opening := c.gate.opening
	return func(forward func(*Request) bool) {
		for {
			w, ok := c.nextWaiting(opening)
			if !ok {
				return
			}
			waited := int64(time.Since(w.since))
			w.r.waited.Add(waited)
			if !forward(w.r) {
				w.r.waited.Add(-waited)
				c.putBack(w)
				return
			}
			c.opts.Metrics.GateReleased(time.Since(w.since))
			w.r.NoteWait("gate", w.since)
		}
	}, nil
}

// nextWaiting removes and returns the oldest message for a release. If there is
// none, it opens the gate.
func (c *Connection) nextWaiting(opening int) (waiting, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known.State != Ready || c.gate.opening != opening {
		return waiting{}, false
	}
	if len(c.gate.queue) == 0 {
		c.gate.passing = true
		return waiting{}, false
	}
	w := c.dequeueLocked(0)
	w.r.passed = true
	return w, true
}

// putBack returns a message to the front of the queue, without a new timeout, or
// refuses it if nothing may wait any more.
func (c *Connection) putBack(w waiting) {
	c.mu.Lock()
	reason := c.gate.refusal
	switch {
	case c.known.State == Draining || c.known.State == Closed:
		reason = ErrDraining
	case reason == nil:
		c.opts.Budget.Force(cost(w.r.Message))
		c.enqueueLocked(0, w.r, w.since)
	}
	c.mu.Unlock()
	if reason != nil {
		c.opts.Metrics.GateRejected(metrics.GateClosed, time.Since(w.since))
		c.handler.Refused(w.r, reason)
	}
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
	waited := c.drainGateLocked(metrics.GateClosed)
	drained, handler := c.drained, c.handler
	c.mu.Unlock()
	if handler != nil {
		handler.Drained()
	}
	for _, r := range waited {
		c.handler.Refused(r, ErrDraining)
	}
	if drained != nil {
		drained()
	}
	return c.Quiet(), nil
}

// Fail moves the connection to Failed. With a refusal, nothing waits: Fail returns the
// waiting messages, which the caller must answer, and the gate refuses new ones until the
// connection is initializing again, whether or not another start is due. Without, old and
// new messages wait for the start that is due.
func (c ForHandler) Fail(refusal error) ([]*Request, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.moveLocked(Failed); err != nil {
		return nil, err
	}
	c.gate.refusal = refusal
	if refusal == nil {
		return nil, nil
	}
	return c.drainGateLocked(metrics.GateFailed), nil
}

// drainGateLocked empties the gate, counts its messages under reason and returns
// them.
func (c *Connection) drainGateLocked(reason string) []*Request {
	var out []*Request
	for len(c.gate.queue) > 0 {
		w := c.dequeueLocked(0)
		c.opts.Metrics.GateRejected(reason, time.Since(w.since))
		out = append(out, w.r)
	}
	return out
}
