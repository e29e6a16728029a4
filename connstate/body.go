package connstate

import (
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// maxBodies bounds the bodies that are read on one connection at the same time, in
// bytes. A larger one is read alone.
const maxBodies = 32 << 20

// HoldBody takes n more bytes for the body of a POST that is being read. It fails with
// ErrBusy. The caller must give them back with ReleaseBody.
func (c *Connection) HoldBody(n int) error {
	if of := c.bodies.Add(int64(n)); of > maxBodies && of > int64(n) || !c.opts.Budget.Take(n, metrics.HeldPost) {
		c.bodies.Add(-int64(n))
		return ErrBusy
	}
	return nil
}

// ReleaseBody gives back n bytes that HoldBody has taken.
func (c *Connection) ReleaseBody(n int) {
	if n == 0 {
		return
	}
	c.bodies.Add(-int64(n))
	c.opts.Budget.Give(n)
}

// Takes returns ErrBusy for a request, which is new work, if the process holds as many
// bytes as it may. Responses and notifications belong to work that goes on.
func (c *Connection) Takes(m *jsonrpc.Message) error {
	if m.Kind == jsonrpc.Request && c.opts.Budget.Check(metrics.HeldPost) {
		return ErrBusy
	}
	return nil
}
