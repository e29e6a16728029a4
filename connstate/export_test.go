package connstate

import (
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Finish removes a request from the unanswered ones. It reports false if the request
// has been answered already, and nothing more may be sent for it. errorType is ""
// for a result; see docs/reference/metrics.md for the others.
func (c *Connection) Finish(id jsonrpc.ID, errorType string) (Request, bool) {
	now := time.Now()
	c.mu.Lock()
	r, ok := c.takeRequestLocked(id, now)
	c.signalQuietLocked()
	c.mu.Unlock()
	if ok {
		c.reportDone(id, r, errorType, nil, now)
	}
	return r, ok
}

// Respond sends a response under the names of the connection's dialect: both
// while that is undecided. It waits for room as Send does.
func (c *Connection) Respond(response []byte) error {
	return c.send(responseEvents(new([2]Event), c.Dialect(), "", response))
}

// Release opens the gate and releases all that waits to a forward that takes
// everything.
func (c *Connection) Release(forward func(*jsonrpc.Message)) error {
	release, err := c.Open()
	if err == nil {
		release(func(m *jsonrpc.Message) bool {
			forward(m)
			return true
		})
	}
	return err
}

// MaxWaiting, MaxWaitingBytes and MaxRated are bounds that only tests name.
const (
	MaxWaiting      = maxWaiting
	MaxWaitingBytes = maxWaitingBytes
	MaxRated        = maxRated
)

// Networks returns the number of networks whose connect rate is remembered.
func (r *Registry) Networks() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.rates.buckets)
}

// PerIP returns the number of networks whose connections are counted.
func (r *Registry) PerIP() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.perIP)
}
