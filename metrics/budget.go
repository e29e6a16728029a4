package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// budgetSeries are the series of the bytes that wait.
type budgetSeries struct {
	held  atomic.Int64
	limit prometheus.Gauge
	over  closedSet[lazyCounter]
}

func newBudgetSeries(b *builder) *budgetSeries {
	s := &budgetSeries{
		limit: b.gauge("mcp_sse_held_bytes_limit", "Bytes that the process may hold; -1 for no limit."),
		over: b.lazyCounters("mcp_sse_over_budget_total", "Work that was refused because the process holds as many bytes as it may, by what it was.",
			"holder", holders()),
	}
	b.add(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mcp_sse_held_bytes", Help: "Bytes held: bodies that are being read, and messages that wait.",
	}, func() float64 { return float64(s.held.Load()) }))
	return s
}

// Held adds n to the bytes held; n is negative when they are given back.
func (m *Metrics) Held(n int) {
	if m == nil {
		return
	}
	m.budget.held.Add(int64(n))
}

// HeldLimit records how many bytes the process may hold; negative: no limit.
func (m *Metrics) HeldLimit(n int64) {
	if m == nil {
		return
	}
	m.budget.limit.Set(float64(max(-1, n)))
}

// OverBudget counts work that was refused because the process holds as many bytes as
// it may, by one of the Held constants.
func (m *Metrics) OverBudget(holder string) {
	if m == nil {
		return
	}
	m.budget.over.of(holder).Inc()
}
