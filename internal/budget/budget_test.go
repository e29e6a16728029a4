package budget_test

import (
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wantHeld expects so many bytes among the metrics.
func wantHeld(t *testing.T, reg *prometheus.Registry, want float64) {
	t.Helper()
	if got := ssetest.Sum(t, reg, "mcp_sse_held_bytes"); got != want {
		t.Errorf("%v bytes are held, want %v", got, want)
	}
}

func newAccount(limit int64) (*budget.Account, *prometheus.Registry) {
	reg := prometheus.NewRegistry()
	return budget.New(limit, metrics.New(reg)), reg
}

func TestNewWorkIsRefusedOverTheLimit(t *testing.T) {
	a, reg := newAccount(100)
	if !a.Reserve(60, metrics.HeldGate) || a.Reserve(41, metrics.HeldGate) || !a.Reserve(40, metrics.HeldGate) {
		t.Error("100 bytes are not 60 and 40, without 41 between them")
	}
	if !a.Full() || !a.Check(metrics.HeldPost) {
		t.Error("100 bytes of 100 do not fill the budget")
	}
	a.ForceReserve(50)
	wantHeld(t, reg, 150)
	for _, holder := range []string{"gate", "post"} {
		ssetest.Want(t, "refusals at "+holder, ssetest.Sum(t, reg, "mcp_sse_over_budget_total", holder), 1)
	}
	a.Release(150)
	if a.Full() || a.Check(metrics.HeldPost) || !a.Reserve(100, metrics.HeldGate) {
		t.Error("what was given back is lost")
	}
}

// The last quarter is for short messages.
func TestLargeMessagesLeaveRoomForShortOnes(t *testing.T) {
	const limit = 40 * budget.Free
	a, _ := newAccount(limit)
	if !a.Reserve(limit/4*3, metrics.HeldPost) || a.Reserve(budget.Free+1, metrics.HeldPost) || !a.Reserve(budget.Free, metrics.HeldPost) {
		t.Error("a large message took of the last quarter, or a short one did not")
	}
	if a.Full() {
		t.Error("the budget is full")
	}
}

func TestShareOfAConnection(t *testing.T) {
	for limit, want := range map[int64]int64{-1: 32 << 20, 1 << 40: 32 << 20, 80: 10} {
		if a, _ := newAccount(limit); a.Share() != want {
			t.Errorf("of %d: a share of %d, want %d", limit, a.Share(), want)
		}
	}
}

func TestNoLimit(t *testing.T) {
	unlimited, reg := newAccount(-1)
	for _, a := range []*budget.Account{unlimited, nil} {
		if !a.Reserve(1<<40, metrics.HeldGate) || a.Full() {
			t.Error("there is a limit")
		}
		a.Release(1 << 39)
	}
	wantHeld(t, reg, 1<<39)
}

// However many take at once, the limit holds, and all bytes come back.
func TestConcurrentTakes(t *testing.T) {
	a, reg := newAccount(1000)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 100 {
				if a.Reserve(30, metrics.HeldGate) {
					a.Release(30)
				}
			}
		})
	}
	wg.Wait()
	wantHeld(t, reg, 0)
	if !a.Reserve(1000, metrics.HeldGate) {
		t.Error("bytes are lost")
	}
}

func TestJoin(t *testing.T) {
	a, _ := newAccount(100)
	b, reg := newAccount(10)
	a.Reserve(60, metrics.HeldGate)
	b.Join(a)
	b.Join(a)
	if b.Reserve(41, metrics.HeldGate) || !b.Reserve(40, metrics.HeldGate) || !a.Full() {
		t.Error("100 bytes are not 60 of one and 40 of the other")
	}
	wantHeld(t, reg, 40) // its own bytes
}
