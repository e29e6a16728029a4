package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// messageSeries are the series of messages between clients and the gateway.
type messageSeries struct {
	in, out           prometheus.Counter
	bytesIn, bytesOut prometheus.Counter
}

func newMessageSeries(b *builder) messageSeries {
	n := b.counterVec("mcp_sse_messages_total", "JSON-RPC messages from (in) and to (out) clients.", "direction")
	size := b.counterVec("mcp_sse_message_bytes_total", "Bytes of the JSON-RPC messages from (in) and to (out) clients.",
		"direction")
	return messageSeries{
		in:       n.WithLabelValues("in"),
		out:      n.WithLabelValues("out"),
		bytesIn:  size.WithLabelValues("in"),
		bytesOut: size.WithLabelValues("out"),
	}
}

// MessageIn counts a JSON-RPC message from a client, and its size in bytes.
func (m *Metrics) MessageIn(bytes int) {
	if m == nil {
		return
	}
	m.messages.in.Inc()
	add(m.messages.bytesIn, bytes)
}

// MessageOut counts a JSON-RPC message to a client, and its size in bytes.
func (m *Metrics) MessageOut(bytes int) {
	if m == nil {
		return
	}
	m.messages.out.Inc()
	add(m.messages.bytesOut, bytes)
}

// Dropped counts a dropped message, by one of the Dropped constants.
func (m *Metrics) Dropped(reason string) {
	if m == nil {
		return
	}
	m.dropped.of(reason).Inc()
}

// requestSeries are the series of clients' requests.
type requestSeries struct {
	inFlight prometheus.Gauge
	vec      histogramVec
	methods  closedSet[*operation]
	errors   closedSet[int] // index of operation.byError
}

// operation holds the operation durations of one method.
type operation struct {
	method string
	// byError holds one histogram for each error type, at its index in
	// requestSeries.errors; nil until the first use.
	byError []atomic.Pointer[histogram]
}

func newRequestSeries(b *builder) requestSeries {
	r := requestSeries{
		inFlight: b.gauge("mcp_sse_requests_in_flight", "Requests of clients that are not answered yet."),
		vec: b.histogramVec("mcp_server_operation_duration_seconds", "Time until requests of clients were answered.",
			otelBuckets(), "mcp_method_name", "error_type", "network_transport"),
	}
	index := -1
	r.errors = newClosedSet(errorTypes(), otelOther, func(string) int { index++; return index })
	r.methods = newClosedSet(methods(), otelOther, func(method string) *operation {
		return &operation{method: method, byError: make([]atomic.Pointer[histogram], index+1)}
	})
	return r
}

// histogram returns the series of a method and an error type. The first call makes
// it.
func (r *requestSeries) histogram(op *operation, errorType string) *histogram {
	slot := &op.byError[r.errors.of(errorType)]
	if h := slot.Load(); h != nil {
		return h
	}
	if _, known := r.errors.known[errorType]; !known {
		errorType = otelOther
	}
	h := newHistogram(r.vec.WithLabelValues(op.method, errorType, transport))
	if slot.CompareAndSwap(nil, h) {
		return h
	}
	return slot.Load()
}

// RequestStarted counts a client's request that begins. One RequestDone must follow.
func (m *Metrics) RequestStarted() {
	if m == nil {
		return
	}
	m.requests.inFlight.Inc()
}

// RequestDone observes the duration of a client's request. errorType is empty, a
// JSON-RPC error code in decimal, or one of the Error constants. The id becomes an
// exemplar; it may be empty.
func (m *Metrics) RequestDone(method, errorType string, d time.Duration, id string) {
	if m == nil {
		return
	}
	m.requests.inFlight.Dec()
	m.requests.histogram(m.requests.methods.of(method), errorType).observe(d, id)
}
