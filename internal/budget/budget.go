// Package budget bounds the bytes that wait in one process.
package budget

import (
	"errors"
	"sync/atomic"

	"github.com/mcp-sse/mcp-sse/metrics"
)

// ItemCost is what a message counts for beside its length, in bytes, so that the
// budget bounds many small messages too.
const ItemCost = 64

// Free is the size up to which a message that is being read from a server, or waits
// for one client, is not refused, in bytes.
const Free = 16 << 10

// ErrUsedUp reports that there are no bytes for new work.
var ErrUsedUp = errors.New("the gateway holds as many bytes as it may")

// Account reserves bytes of a budget for one gateway: for bodies that are being read, and
// for messages that wait. It is safe for concurrent use. A nil *Account has no bound
// and counts nothing.
type Account struct {
	budget  *budget
	metrics *metrics.Metrics
}

type budget struct {
	limit int64 // negative: there is none
	used  atomic.Int64
}

// New returns an account with a budget of its own, of limit bytes; without a bound if
// limit is negative. m counts bytes and refusals.
func New(limit int64, m *metrics.Metrics) *Account {
	return &Account{&budget{limit: limit}, m}
}

// Join makes a reserve its bytes in the budget of b. If it does not yet, a must not have been
// used.
func (a *Account) Join(b *Account) {
	if a.budget != b.budget {
		a.budget = b.budget
	}
}

// Reserve reserves n bytes for new work if the budget has them, and reports whether it has.
// The last quarter is for what has at most Free bytes: a few clients with large
// messages do not keep the others from asking. Reserve counts a refusal under holder, one
// of the Held constants of package metrics. The caller must release what it
// has reserved.
func (a *Account) Reserve(n int, holder string) bool { return a.ReservePart(n, n, holder) }

// ReservePart is Reserve for n bytes of something that has size bytes so far.
func (a *Account) ReservePart(n, size int, holder string) bool {
	if a == nil {
		return true
	}
	limit := a.budget.limit
	if size > Free {
		limit -= limit / 4
	}
	if used := a.budget.used.Add(int64(n)); limit >= 0 && used > limit {
		a.budget.used.Add(-int64(n))
		a.metrics.OverBudget(holder)
		return false
	}
	a.metrics.Held(n)
	return true
}

// ForceReserve reserves n bytes for work that goes on in any case, also over the limit. The
// caller must release them.
func (a *Account) ForceReserve(n int) {
	if a == nil {
		return
	}
	a.budget.used.Add(int64(n))
	a.metrics.Held(n)
}

// Release releases n bytes that were reserved.
func (a *Account) Release(n int) { a.ForceReserve(-n) }

// Share returns the bytes that one connection may take for bodies: an eighth of the
// budget, and at most 32 MiB.
func (a *Account) Share() int64 {
	const most = 32 << 20
	if a == nil || a.budget.limit < 0 {
		return most
	}
	return min(most, a.budget.limit/8)
}

// Full reports whether the budget is used up.
func (a *Account) Full() bool {
	return a != nil && a.budget.limit >= 0 && a.budget.used.Load() >= a.budget.limit
}

// Check is Full, and counts a refusal under holder if it is.
func (a *Account) Check(holder string) bool {
	full := a.Full()
	if full {
		a.metrics.OverBudget(holder)
	}
	return full
}
