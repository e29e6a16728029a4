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

// Sender takes bytes for the bodies of one sender that are being read.
type Sender struct {
	all  *bodies
	name string
}

// Sender returns the Sender for the bodies of POSTs on this connection.
func (c ForTransport) Sender() Sender { return Sender{c.opts.bodies, c.id} }

// Sender returns the Sender for bodies that belong to no connection yet: that of a principal,
// or without one of an address.
func (r *Registry) Sender(principal string, addr netip.Addr) Sender {
	if principal == "" {
		return Sender{r.opts.bodies, "network " + subnet.Of(addr).String()}
	}
	return Sender{r.opts.bodies, "principal " + principal}
}

// ReserveBody takes n more bytes for a body that holds held bytes already. It fails with
// ErrBusy, also if the bodies of the sender have its share of the budget; a larger body is
// read alone. The caller must give the bytes back with ReleaseBody.
func (s Sender) ReserveBody(n, held int) error {
	b := s.all
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.by[s.name] + n
	if alone := all == n+held; all > int(b.held.Share()) && !alone || !b.held.ReservePart(n, n+held, metrics.HeldPost) {
		return ErrBusy
	}
	b.by[s.name] = all
	return nil
}

// ReleaseBody gives back n bytes that ReserveBody has taken.
func (s Sender) ReleaseBody(n int) {
	if n == 0 {
		return
	}
	b := s.all
	b.held.Release(n)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.by[s.name] -= n
	if b.by[s.name] <= 0 {
		delete(b.by, s.name)
	}
}

// CountKept notes that n more bytes are kept for clients that may come back for them, or -n
// fewer.
func (r *Registry) CountKept(n int) { r.opts.Budget.ForceReserve(n) }

// CheckBudget returns ErrBusy for a request, which is new work, if the process holds as many
// bytes as it may. Responses and notifications belong to work that goes on.
func (c ForTransport) CheckBudget(m *jsonrpc.Message) error {
	if m.Kind == jsonrpc.Request && c.opts.Budget.Check(metrics.HeldPost) {
		return ErrBusy
	}
	return nil
}

// CountQueued notes that n more bytes wait for the client outside of the outbox, or -n
// bytes no longer do. It is for transports that take the events by DeliverTo.
func (c ForTransport) CountQueued(n int) {
	if n != 0 {
		c.queued.Add(int64(n))
		c.opts.Budget.ForceReserve(n)
	}
}

// QueueHasRoom reports whether n bytes may wait beside those that are queued already, at
// most limit: less if the process holds as many bytes as it may. An empty queue takes
// anything.
func (c ForTransport) QueueHasRoom(queued, n, limit int) bool {
	all := queued + n
	return queued == 0 || all <= limit && (all <= budget.Free || !c.opts.Budget.Full())
}
