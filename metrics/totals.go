package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Totals are counts of one server, over all transports.
type Totals struct {
	// Handshakes are initializations that worked, Requests those answered, and Errors the
	// initializations and requests that failed, without those that the client cancelled.
	Handshakes, Requests, Errors int
	// Restarts are lost sessions that a new one has replaced, and Crashes child processes
	// that ended by themselves with an error or by a signal.
	Restarts, Crashes int
	// Sessions and Children are those that exist now.
	Sessions, Children int
}

// Totals returns what m has counted.
func (m *Metrics) Totals() Totals {
	m = m.live()
	var t Totals
	each(m.handshakes, func(label map[string]string, s *dto.Metric) {
		switch n := int(s.GetCounter().GetValue()); label["result"] {
		case HandshakeOK:
			t.Handshakes += n
		case HandshakeError:
			t.Errors += n
		}
	})
	requests := func(label map[string]string, s *dto.Metric) {
		n := int(s.GetHistogram().GetSampleCount())
		t.Requests += n
		if e := label["error_type"]; e != "" && e != ErrorCanceled {
			t.Errors += n
		}
	}
	each(m.operations, requests)
	for _, over := range m.over {
		if over.clientSeries != m.clientSeries { // else it is counted
			each(over.operations, requests)
		}
	}
	each(m.childExits, func(label map[string]string, s *dto.Metric) {
		if reason := label["reason"]; reason == ChildError || reason == ChildSignal {
			t.Crashes += int(s.GetCounter().GetValue())
		}
	})
	each(m.restarts, func(_ map[string]string, s *dto.Metric) { t.Restarts = int(s.GetCounter().GetValue()) })
	each(m.sessions, func(_ map[string]string, s *dto.Metric) { t.Sessions = int(s.GetGauge().GetValue()) })
	each(m.children, func(_ map[string]string, s *dto.Metric) { t.Children = int(s.GetGauge().GetValue()) })
	return t
}

// each calls f with the labels and the value of each series of c.
func each(c prometheus.Collector, f func(label map[string]string, s *dto.Metric)) {
	series := make(chan prometheus.Metric)
	go func() { // ends when all series are received
		defer close(series)
		c.Collect(series)
	}()
	for s := range series {
		var value dto.Metric
		if s.Write(&value) != nil {
			continue
		}
		label := make(map[string]string)
		for _, pair := range value.GetLabel() {
			label[pair.GetName()] = pair.GetValue()
		}
		f(label, &value)
	}
}
