package ssetest

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Sum returns the sum of the counters and gauges of a name, of those alone that have one of
// these label values if there are any.
func Sum(t testing.TB, from prometheus.Gatherer, name string, values ...string) (sum float64) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	has := func(l *dto.LabelPair) bool { return slices.Contains(values, l.GetValue()) }
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (values == nil || slices.ContainsFunc(m.GetLabel(), has)) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
