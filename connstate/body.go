package connstate

import (
	"net/netip"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/subnet"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// bodies counts the bytes of bodies that are being read, by who sends them.
type bodies struct {
	held *budget.Account

	mu sync.Mutex // guards by
	by map[string]int
}

// hold takes n more bytes for a body of who that holds held bytes already. It fails with
// ErrBusy, also if the bodies of who have its share of the budget; a larger body is read
// alone.
func (b *bodies) hold(who string, n, held int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.by[who] + n
	if alone := all == n+held; all > int(b.held.Share()) && !alone || !b.held.TakePart(n, n+held, metrics.HeldPost) {
		return ErrBusy
	}
	b.by[who] = all
	return nil
}

func (b *bodies) release(who string, n int) {
	if n == 0 {
		return
	}
	b.held.Give(n)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by[who] -= n; b.by[who] <= 0 {
		delete(b.by, who)
	}
}

// HoldBody takes n more bytes for the body of a POST that holds held bytes already. It
// fails with ErrBusy, also if the bodies that are read on this connection have its share
// of the budget; a larger body is read alone. The caller must give the bytes back with
// ReleaseBody.
func (c *Connection) HoldBody(n, held int) error { return c.opts.bodies.hold(c.id, n, held) }

// ReleaseBody gives back n bytes that HoldBody has taken.
func (c *Connection) ReleaseBody(n int) { c.opts.bodies.release(c.id, n) }

// HoldBody takes n more bytes for a body that belongs to no connection yet; see
// Connection.HoldBody. Its share is that of who sends it: of a principal, or without one of
// an address. The caller must give the bytes back with ReleaseBody.
func (r *Registry) HoldBody(principal string, addr netip.Addr, n, held int) error {
	return r.opts.bodies.hold(sender(principal, addr), n, held)
}

// ReleaseBody gives back n bytes that HoldBody has taken for the same sender.
func (r *Registry) ReleaseBody(principal string, addr netip.Addr, n int) {
	r.opts.bodies.release(sender(principal, addr), n)
}

func sender(principal string, addr netip.Addr) string {
	if principal != "" {
		return "principal " + principal
	}
	return "network " + subnet.Of(addr).String()
}

// HoldKept notes that n more bytes are kept for clients that may come back for them, or -n
// fewer.
func (r *Registry) HoldKept(n int) { r.opts.Budget.Force(n) }

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
