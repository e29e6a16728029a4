package connstate

import (
	"net/netip"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/subnet"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// HoldBody takes n more bytes for the body of a POST that holds held bytes already. It
// fails with ErrBusy, also if the bodies that are read on this connection have its share
// of the budget; a larger body is read alone. The caller must give the bytes back with
// ReleaseBody.
func (c *Connection) HoldBody(n, held int) error {
	err := c.opts.holdBody(c.bodies.Add(int64(n)), n, held)
	if err != nil {
		c.bodies.Add(-int64(n))
	}
	return err
}

// holdBody takes n more bytes for a body that holds held bytes already. all are those of
// its sender, with these.
func (o *Options) holdBody(all int64, n, held int) error {
	alone := all == int64(n+held)
	if all > o.Budget.Share() && !alone || !o.Budget.TakePart(n, n+held, metrics.HeldPost) {
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

// CheckBudget returns ErrBusy for a request, which is new work, if the process holds as many
// bytes as it may. Responses and notifications belong to work that goes on.
func (c *Connection) CheckBudget(m *jsonrpc.Message) error {
	if m.Kind == jsonrpc.Request && c.opts.Budget.Check(metrics.HeldPost) {
		return ErrBusy
	}
	return nil
}

// HoldQueued notes that n more bytes wait for the client outside of the outbox, or -n
// bytes no longer do. It is for transports that take the events by DeliverTo.
func (c *Connection) HoldQueued(n int) {
	if n != 0 {
		c.queued.Add(int64(n))
		c.opts.Budget.Force(n)
	}
}

// QueuesTooMuch reports whether more waits for the client outside of the outbox than the
// outbox would hold, while the process holds as many bytes as it may.
func (c *Connection) QueuesTooMuch() bool {
	return c.queued.Load() > int64(c.opts.OutboxBytes) && c.opts.Budget.Full()
}

// QueueHasRoom reports whether n bytes may wait beside those that are queued already, at
// most limit: less if the process holds as many bytes as it may. An empty queue takes
// anything.
func (c *Connection) QueueHasRoom(queued, n, limit int) bool {
	all := queued + n
	return queued == 0 || all <= limit && (all <= budget.Free || !c.opts.Budget.Full())
}

// bodies are the bytes of bodies that belong to no connection yet, by who sends them.
type bodies struct {
	mu sync.Mutex // guards by
	by map[string]int64
}

// HoldBody takes n more bytes for a body that belongs to no connection yet; see
// Connection.HoldBody. Its share is that of who sends it: of a principal, or without one of
// an address. The caller must give the bytes back with ReleaseBody.
func (r *Registry) HoldBody(principal string, addr netip.Addr, n, held int) error {
	who := sender(principal, addr)
	r.bodies.mu.Lock()
	defer r.bodies.mu.Unlock()
	all := r.bodies.by[who] + int64(n)
	if err := r.opts.holdBody(all, n, held); err != nil {
		return err
	}
	if r.bodies.by == nil {
		r.bodies.by = make(map[string]int64)
	}
	r.bodies.by[who] = all
	return nil
}

// HoldKept notes that n more bytes are kept for clients that may come back for them, or -n
// fewer.
func (r *Registry) HoldKept(n int) { r.opts.Budget.Force(n) }

// ReleaseBody gives back n bytes that HoldBody has taken for the same sender.
func (r *Registry) ReleaseBody(principal string, addr netip.Addr, n int) {
	if n == 0 {
		return
	}
	r.opts.Budget.Give(n)
	who := sender(principal, addr)
	r.bodies.mu.Lock()
	defer r.bodies.mu.Unlock()
	if r.bodies.by[who] -= int64(n); r.bodies.by[who] <= 0 {
		delete(r.bodies.by, who)
	}
}

func sender(principal string, addr netip.Addr) string {
	if principal != "" {
		return "principal " + principal
	}
	return subnet.Of(addr).String()
}
