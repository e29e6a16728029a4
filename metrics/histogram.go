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

// otelBuckets returns the buckets of the OpenTelemetry conventions for MCP.
func otelBuckets() []float64 {
	return []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
}

// fineBuckets returns buckets from microseconds, for an in-process server, to
// seconds, for the cold start of a child process.
func fineBuckets() []float64 {
	return []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
}

// histogramOpts returns options with native histograms beside the classic buckets,
// and with the bound on their number that Prometheus recommends.
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

// exemplarObserver is an observer that takes exemplars. Every Prometheus histogram is
// one.
type exemplarObserver interface {
	prometheus.Observer
	prometheus.ExemplarObserver
}

// histogramVec makes histograms by their labels.
type histogramVec struct{ vec *prometheus.HistogramVec }

// WithLabelValues returns the histogram of these labels. The first observation makes
// its series: each has as many as buckets, and most labels never occur.
func (v histogramVec) WithLabelValues(labels ...string) prometheus.Observer {
	return lazyObserver(sync.OnceValue(func() exemplarObserver {
		return v.vec.WithLabelValues(labels...).(exemplarObserver)
	}))
}

// lazyObserver is a histogram that its first observation makes.
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
	start  time.Time    // monotonic; last counts from here
	last   atomic.Int64 // time of the last exemplar
}

func newHistogram(series prometheus.Observer) *histogram {
	h := &histogram{series: series.(exemplarObserver), start: time.Now()}
	h.last.Store(-int64(exemplarEvery))
	return h
}

// observe observes d, with id as exemplar if one is due.
func (h *histogram) observe(d time.Duration, id string) {
	seconds := max(d, 0).Seconds()
	if !h.exemplarDue(id) {
		h.series.Observe(seconds)
		return
	}
	h.series.ObserveWithExemplar(seconds, prometheus.Labels{exemplarLabel: id})
}

// exemplarDue reports whether id is a valid exemplar and the last one is long enough
// ago. Of concurrent callers only one gets true.
func (h *histogram) exemplarDue(id string) bool {
	if id == "" || len(id) > maxExemplarID || !utf8.ValidString(id) {
		return false
	}
	now, last := int64(time.Since(h.start)), h.last.Load()
	return now-last >= int64(exemplarEvery) && h.last.CompareAndSwap(last, now)
}
