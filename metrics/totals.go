package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Totals are counts of one server, over all transports.
type Totals struct {
	// Handshakes worked, Requests were answered, and Errors are failed handshakes and
	// requests, without requests that their client cancelled.
	Handshakes, Requests, Errors int
	// Restarts are lost sessions that a new one has replaced, and Crashes child processes
	// that ended by themselves with an error or by a signal.
	Restarts, Crashes  int
	Sessions, Children int // that exist now
}

// Totals returns what m has counted.
func (m *Metrics) Totals() Totals {
	m = m.live()
	t := Totals{
		Handshakes: sum(m.handshakes, HandshakeOK), Errors: sum(m.handshakes, HandshakeError), Restarts: sum(m.restarts),
		Crashes: sum(m.childExits, ChildError, ChildSignal), Sessions: sum(m.sessions), Children: sum(m.children),
	}
	over := m.over
	if over == nil {
		over = map[string]*Metrics{"": m}
	}
	for _, m := range over {
		requests := sum(m.operations)
		t.Requests += requests
		t.Errors += requests - sum(m.operations, "", ErrorCanceled)
	}
	return t
}

// sum adds up the series of c that have one of the values as a label; without values, all.
func sum(c prometheus.Collector, values ...string) int {
	series := make(chan prometheus.Metric)
	go func() { // ends when all series are received
		defer close(series)
		c.Collect(series)
	}()
	n := 0.0
	for s := range series {
		var d dto.Metric
		has := func(l *dto.LabelPair) bool { return slices.Contains(values, l.GetValue()) }
		if s.Write(&d) == nil && (len(values) == 0 || slices.ContainsFunc(d.GetLabel(), has)) {
			n += d.GetCounter().GetValue() + d.GetGauge().GetValue() + float64(d.GetHistogram().GetSampleCount())
		}
	}
	return int(n)
}
