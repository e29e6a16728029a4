package ssetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func gather(t testing.TB, from prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	families, err := from.Gather()
	Must(t, err)
	return families
}

// Sum returns the sum of the counters and gauges of a name, of those alone that have one of
// these label values if there are any.
func Sum(t testing.TB, from prometheus.Gatherer, name string, values ...string) (sum float64) {
	t.Helper()
	has := func(l *dto.LabelPair) bool { return slices.Contains(values, l.GetValue()) }
	for _, family := range gather(t, from) {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (values == nil || slices.ContainsFunc(m.GetLabel(), has)) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// Series returns the value of each series, named as in Prometheus: name{label="value"}. Of a
// histogram it is the count, with the sum under name_sum.
func Series(t testing.TB, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	all := make(map[string]float64)
	for _, family := range gather(t, from) {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			text := ""
			if len(labels) > 0 {
				text = "{" + strings.Join(labels, ",") + "}"
			}
			all[family.GetName()+text] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if h := m.GetHistogram(); h != nil {
				all[family.GetName()+text], all[family.GetName()+"_sum"+text] = float64(h.GetSampleCount()),
					h.GetSampleSum()
			}
		}
	}
	return all
}
