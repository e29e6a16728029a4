package metrics

import (
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// exemplarEvery is the least time between two exemplars of one series. An
	// exemplar costs a map and a few more allocations, and a scrape sees only
	// the last one of a bucket.
	exemplarEvery = 100 * time.Millisecond
	// maxExemplarID bounds an id in an exemplar. Prometheus panics over 128
	// characters of all names and values together.
	maxExemplarID = 64

	exemplarLabel = "connection_id"
)

// otelBuckets are those of the OpenTelemetry conventions for MCP.
func otelBuckets() []float64 {
	return []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
}

// fineBuckets suit what an in-process server does in microseconds and a cold
// child process in seconds.
func fineBuckets() []float64 {
	return []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
}

// histogramOpts turns native histograms on beside the classic buckets, with
// the bound on their number that Prometheus asks for.
func histogramOpts(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name:                            name,
		Help:                            help,
		Buckets:                         buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}
}

// exemplarObserver is what every Prometheus histogram is.
type exemplarObserver interface {
	prometheus.Observer
	prometheus.ExemplarObserver
}

// histogramVec makes histograms by their labels.
type histogramVec struct{ vec *prometheus.HistogramVec }

// WithLabelValues returns the histogram of these labels. Its series are made by
// the first observation: there are as many as buckets, and most labels never occur.
func (v histogramVec) WithLabelValues(labels ...string) prometheus.Observer {
	return lazyObserver(sync.OnceValue(func() exemplarObserver {
		return v.vec.WithLabelValues(labels...).(exemplarObserver)
	}))
}

// lazyObserver is a histogram that is made by its first observation.
type lazyObserver func() exemplarObserver

// Observe observes a value.
func (o lazyObserver) Observe(v float64) { o().Observe(v) }

// ObserveWithExemplar observes a value, with an exemplar.
func (o lazyObserver) ObserveWithExemplar(v float64, e prometheus.Labels) {
	o().ObserveWithExemplar(v, e)
}

// histogram observes durations and gives some of them an exemplar.
type histogram struct {
	series exemplarObserver
	start  time.Time    // last counts from here, by the monotonic clock
	last   atomic.Int64 // when the last exemplar was given
}

func newHistogram(series prometheus.Observer) *histogram {
	h := &histogram{series: series.(exemplarObserver), start: time.Now()}
	h.last.Store(-int64(exemplarEvery))
	return h
}

// observe counts d, with the connection's id as exemplar where one is due.
func (h *histogram) observe(d time.Duration, id string) {
	seconds := max(d, 0).Seconds()
	if !h.exemplarDue(id) {
		h.series.Observe(seconds)
		return
	}
	h.series.ObserveWithExemplar(seconds, prometheus.Labels{exemplarLabel: id})
}

// exemplarDue reports whether id is fit to be an exemplar and none was given
// lately. Of callers at the same time one gets true.
func (h *histogram) exemplarDue(id string) bool {
	if id == "" || len(id) > maxExemplarID || !utf8.ValidString(id) {
		return false
	}
	now, last := int64(time.Since(h.start)), h.last.Load()
	return now-last >= int64(exemplarEvery) && h.last.CompareAndSwap(last, now)
}
