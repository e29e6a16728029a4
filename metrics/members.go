package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// The states of a member of a view: values of state in [Metrics.MeasureMembers].
const (
	MemberListed  = "listed"  // its tools are known
	MemberLate    = "late"    // a list has waited for it in vain
	MemberFailing = "failing" // it fails for a session
	MemberUnused  = "unused"  // no client has needed it
)

// Member is a member of a view, with its state.
type Member struct{ Name, State string }

// viewMembers is the series of the members of a view. It asks for them at each scrape, so that members that have left
// leave no series.
type viewMembers struct {
	desc    *prometheus.Desc
	measure atomic.Pointer[func() []Member] // nil: the server is no view
}

var _ prometheus.Collector = (*viewMembers)(nil)

// viewMembers makes the series.
func (f *factory) viewMembers(name, help string) *viewMembers {
	desc := prometheus.NewDesc(name, help, []string{"member", "state"}, f.labels)
	return keep(f, &viewMembers{desc: desc})
}

// Describe sends the description of the series.
func (v *viewMembers) Describe(ch chan<- *prometheus.Desc) { ch <- v.desc }

// Collect sends a series for each member and each state: 1 for that of the member, 0 for the others.
func (v *viewMembers) Collect(ch chan<- prometheus.Metric) {
	measure := v.measure.Load()
	if measure == nil {
		return
	}
	for _, member := range (*measure)() {
		for _, state := range []string{MemberListed, MemberLate, MemberFailing, MemberUnused} {
			value := 0.0
			if member.State == state {
				value = 1
			}
			ch <- prometheus.MustNewConstMetric(v.desc, prometheus.GaugeValue, value, member.Name, state)
		}
	}
}

// MeasureMembers makes measure tell the members of a view, whenever somebody reads the series. It must be safe for
// concurrent use, and return each name once. nil: the server is no view.
func (m *Metrics) MeasureMembers(measure func() []Member) {
	if m == nil {
		return
	}
	if measure == nil {
		m.members.measure.Store(nil)
		return
	}
	m.members.measure.Store(&measure)
}
