package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// factory makes collectors and keeps them for the registry.
type factory struct {
	all    []prometheus.Collector
	labels prometheus.Labels // constant labels of the next collectors
}

func keep[C prometheus.Collector](f *factory, c C) C {
	f.all = append(f.all, c)
	return c
}

func (f *factory) counter(name, help string) prometheus.Counter {
	return keep(f, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: f.labels}))
}

// counters makes a counter for each value of a label.
func (f *factory) counters(name, help, label string, values ...string) *prometheus.CounterVec {
	v := f.counterVec(name, help, label)
	for _, value := range values {
		v.WithLabelValues(value)
	}
	return v
}

func (f *factory) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return keep(f, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: f.labels},
		labels))
}

func (f *factory) gauge(name, help string) prometheus.Gauge {
	return keep(f, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: f.labels}))
}

func (f *factory) gaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return keep(f, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: f.labels}, labels))
}

func (f *factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return keep(f, prometheus.NewHistogram(f.histogramOpts(name, help, buckets)))
}

func (f *factory) histogramVec(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return keep(f, prometheus.NewHistogramVec(f.histogramOpts(name, help, buckets), labels))
}

// histogramOpts returns options with native histograms beside the classic buckets, and
// with the bound on their number that Prometheus recommends.
func (f *factory) histogramOpts(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name:                            name,
		Help:                            help,
		ConstLabels:                     f.labels,
		Buckets:                         buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}
}

// otelBuckets returns the buckets of the OpenTelemetry conventions for MCP.
func otelBuckets() []float64 {
	return []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
}

// fineBuckets returns buckets from half a millisecond, for an in-process server, to a
// minute, for the cold start of a child process.
func fineBuckets() []float64 {
	return []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
}
