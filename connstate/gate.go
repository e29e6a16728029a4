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
	// opening counts the moves to Ready. By it a release notices that another move to
	// Ready has come since.
	opening int
	// timer runs while the queue is not empty, for its oldest message.
	timer *time.Timer
}

// gateBytes bounds the queued messages of one gate, in bytes; a larger message waits
// alone.
const gateBytes = 8 << 20

type waiting struct {
	r     *Request
	since time.Time
}

// Admit decides what to do with a client's message. If it reports true, the caller
// must hand the message to the server now. If it reports false without an error, the
// message waits at the gate until [Connection.Open], [Connection.Withdraw] or its
// timeout. Otherwise the message is refused, with ErrGateFull, ErrDraining,
// ErrBusy, ErrClosed or what [Connection.Fail] was given.
func (c *Connection) Admit(r *Request) (bool, error) {
	return c.admit(r, false)
}

// Readmit is Admit for an unanswered request that has been through the gate. The
// gate has room for all of those, within its bound in bytes.
func (c *Connection) Readmit(r *Request) (bool, error) {
	return c.admit(r, true)
}

// cost returns what a message at the gate takes from the budget. Begin has taken the
// bytes of a request.
func cost(m *jsonrpc.Message) int {
	if m.Kind == jsonrpc.Request {
		return 0
	}
	return len(m.Raw()) + budget.ItemCost
}

// admit is Admit or, again, Readmit of a message that takes cost bytes from the budget.
func (c *Connection) admit(r *Request, again bool) (bool, error) {
	size, room := cost(r.Message), c.opts.GateQueue
	if again {
		room += c.opts.MaxPending
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.state == Closed:
		return false, ErrClosed
	case c.state == Draining && r.Message.Kind == jsonrpc.Request:
		return false, ErrDraining
	case c.gate.passing:
		return true, nil
	case c.gate.refusal != nil:
		c.opts.Metrics.GateRefused(metrics.GateFailed)
		return false, c.gate.refusal
	case c.state == Draining:
		return false, ErrDraining
	case len(c.gate.queue) >= room || c.gate.bytes > 0 && c.gate.bytes+len(r.Message.Raw()) > gateBytes:
		c.opts.Metrics.GateRefused(metrics.GateFull)
		return false, ErrGateFull
	case again:
		c.opts.Budget.Force(size)
	case !c.opts.Budget.Take(size, metrics.HeldGate):
		c.opts.Metrics.GateRefused(metrics.GateBudget)
		return false, ErrBusy
	}
	c.gate.queue = append(c.gate.queue, waiting{r, time.Now()})
	c.gate.bytes += len(r.Message.Raw())
	c.opts.Metrics.GateQueued()
	if c.gate.timer == nil {
		c.gate.timer = time.AfterFunc(c.opts.GateTimeout, c.expire)
	}
	return false, nil
}

// expire refuses the messages that have waited too long.
func (c *Connection) expire() {
	var late []waiting
	c.mu.Lock()
	now := time.Now()
	for len(c.gate.queue) > 0 {
		due := c.gate.queue[0].since.Add(c.opts.GateTimeout).Sub(now)
		if due > 0 {
			c.gate.timer.Reset(due)
			break
		}
		late = append(late, c.popLocked())
	}
	c.mu.Unlock()
	for _, w := range late {
		c.opts.Metrics.GateRejected(metrics.GateTimeout, now.Sub(w.since))
		c.handler.Refused(w.r, ErrGateTimeout)
	}
}

// popLocked removes and returns the oldest message. It stops the timer with the
// last.
func (c *Connection) popLocked() waiting {
	w := c.gate.queue[0]
	c.gate.queue = c.gate.queue[1:]
	c.releaseLocked(w.r.Message)
	c.stopTimerLocked()
	return w
}

// releaseLocked gives back what a message took that leaves the queue.
func (c *Connection) releaseLocked(m *jsonrpc.Message) {
	c.gate.bytes -= len(m.Raw())
	c.opts.Budget.Give(cost(m))
}

func (c *Connection) stopTimerLocked() {
	if len(c.gate.queue) > 0 {
		return
	}
	c.gate.queue = nil
	if c.gate.timer != nil {
		c.gate.timer.Stop()
		c.gate.timer = nil
	}
}

// Open moves the connection to Ready. The returned function hands the waiting
// messages to forward in the order in which they came; messages that come meanwhile
// wait behind them. It stops when the connection leaves Ready, or when forward
// reports false: then that message goes back to the front. Open fails with a
// *MoveError if the connection cannot become ready.
func (c *Connection) Open() (release func(forward func(*Request) bool), err error) {
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
			if !forward(w.r) {
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
	if c.state != Ready || c.gate.opening != opening {
		return waiting{}, false
	}
	if len(c.gate.queue) == 0 {
		c.gate.passing = true
		return waiting{}, false
	}
	return c.popLocked(), true
}

// putBack returns a message to the front of the queue, without a new timeout, or
// refuses it if nothing may wait any more.
func (c *Connection) putBack(w waiting) {
	c.mu.Lock()
	reason := c.gate.refusal
	switch {
	case c.state == Draining || c.state == Closed:
		reason = ErrDraining
	case reason == nil:
		c.gate.queue = slices.Insert(c.gate.queue, 0, w)
		c.gate.bytes += len(w.r.Message.Raw())
		c.opts.Budget.Force(cost(w.r.Message))
		if c.gate.timer == nil {
			c.gate.timer = time.AfterFunc(c.opts.GateTimeout-time.Since(w.since), c.expire)
		}
	}
	c.mu.Unlock()
	if reason != nil {
		c.opts.Metrics.GateRejected(metrics.GateClosed, time.Since(w.since))
		c.handler.Refused(w.r, reason)
	}
}

// Withdraw removes a request from the gate and reports whether it was there.
func (c *Connection) Withdraw(r *Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.gate.queue {
		if w.r == r {
			c.gate.queue = append(c.gate.queue[:i:i], c.gate.queue[i+1:]...)
			c.releaseLocked(w.r.Message)
			c.stopTimerLocked()
			c.opts.Metrics.GateRejected(metrics.GateCanceled, time.Since(w.since))
			return true
		}
	}
	return false
}

// Drain moves the connection to Draining and refuses the messages at the gate. The
// returned channel is closed when no request is unanswered. Drain fails with a
// *MoveError if the connection is closed or draining already.
func (c *Connection) Drain() (<-chan struct{}, error) {
	c.mu.Lock()
	if err := c.moveLocked(Draining); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	waited := c.drainGateLocked(metrics.GateClosed)
	quiet, drained := c.awaitQuietLocked(), c.drained
	c.mu.Unlock()
	for _, r := range waited {
		c.handler.Refused(r, ErrDraining)
	}
	if drained != nil {
		drained()
	}
	return quiet, nil
}

// Fail moves the connection to Failed. With a refusal, no start is due: Fail returns
// the waiting messages, which the caller must answer, and the gate refuses new ones
// until the connection is initializing again. Without, another start is due: old and
// new messages wait.
func (c *Connection) Fail(refusal error) ([]*Request, error) {
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
	for _, w := range c.gate.queue {
		c.opts.Metrics.GateRejected(reason, time.Since(w.since))
		c.releaseLocked(w.r.Message)
		out = append(out, w.r)
	}
	c.gate.queue = nil
	c.stopTimerLocked()
	return out
}
