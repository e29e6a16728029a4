package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// connectionSeries are the series of the life of streams.
type connectionSeries struct {
	open     prometheus.Gauge
	opened   prometheus.Counter
	closed   closedSet[lazyCounter]
	duration closedSet[*histogram] // by close reason
	refusalSeries
	initialized   *histogram
	state         closedSet[prometheus.Gauge]
	ready         *histogram
	heartbeats    prometheus.Counter
	writeTimeouts prometheus.Counter
	outboxFull    prometheus.Counter
}

func newConnectionSeries(b *builder) connectionSeries {
	states := newStateGauges(b)
	return connectionSeries{
		open:   b.gauge("mcp_sse_connections", "Open connections."),
		opened: b.counter("mcp_sse_connections_opened_total", "Connections opened."),
		closed: b.lazyCounters("mcp_sse_connections_closed_total", "Connections closed, by reason.",
			"reason", closedReasons(), ClosedSlow, ClosedWriteTimeout, ClosedError, other),
		duration:      newSessionDuration(b),
		refusalSeries: newRefusalSeries(b),
		initialized: b.histogram("mcp_sse_initialized_seconds",
			"Time from when a connection was first ready until it ended.", otelBuckets()),
		state: states,
		ready: b.histogram("mcp_sse_ready_seconds", "Time from a GET until its connection was ready.",
			fineBuckets()),
		heartbeats: b.counter("mcp_sse_heartbeats_total", "Heartbeats written to streams."),
		writeTimeouts: b.counter("mcp_sse_write_timeouts_total",
			"Writes to a stream that took longer than the write timeout."),
		outboxFull: b.counter("mcp_sse_outbox_full_total", "Messages that found the outbox of their connection full."),
	}
}

func newStateGauges(b *builder) closedSet[prometheus.Gauge] {
	v := b.gaugeVec("mcp_sse_connection_state", "Open connections, by state.", "state")
	return newClosedSet(states(), other, func(s string) prometheus.Gauge { return v.WithLabelValues(s) })
}

// newSessionDuration maps each close reason to the histogram of its error_type: all
// reasons that are not errors share the empty one.
func newSessionDuration(b *builder) closedSet[*histogram] {
	v := b.histogramVec("mcp_server_session_duration_seconds", "How long connections lasted that were ready once, by how they ended.",
		otelBuckets(), "network_transport", "error_type")
	child := func(errorType string) *histogram { return newHistogram(v.WithLabelValues(transport, errorType)) }
	byError := newClosedSet(closedErrors(), otelOther, child)
	fine := child("")
	set := closedSet[*histogram]{known: make(map[string]*histogram), rest: byError.rest}
	for _, reason := range closedReasons() {
		set.known[reason] = fine
		if h, ok := byError.known[reason]; ok {
			set.known[reason] = h
		}
	}
	return set
}

// ConnectionOpened counts a stream whose response head has been sent.
func (m *Metrics) ConnectionOpened() {
	if m == nil {
		return
	}
	m.connections.opened.Inc()
	m.connections.open.Inc()
}

// ConnectionClosed counts the end of an opened connection, by one of the Closed
// constants.
func (m *Metrics) ConnectionClosed(reason string) {
	if m == nil {
		return
	}
	m.connections.closed.of(reason).Inc()
	m.connections.open.Dec()
}

// ConnectionLasted observes a closed connection that was ready once: the reason, as in
// ConnectionClosed, its age, and the time since it was first ready. The id, shortened
// for readers of the metrics, becomes an exemplar; it may be empty.
func (m *Metrics) ConnectionLasted(reason string, age, initialized time.Duration, id string) {
	if m == nil {
		return
	}
	m.connections.duration.of(reason).observe(age, id)
	m.connections.initialized.observe(initialized, id)
}

// ConnectionRejected counts a GET that got no stream, or a request whose method is
// not POST, by one of the Rejected constants.
func (m *Metrics) ConnectionRejected(reason string) {
	if m == nil {
		return
	}
	m.connections.rejected.of(reason).Inc()
}

// PostRejected counts a POST that got no 202, by one of the Post constants.
func (m *Metrics) PostRejected(reason string) {
	if m == nil {
		return
	}
	m.connections.postRejected.of(reason).Inc()
}

// StateChanged moves a connection from one state to another. An empty from is a new
// connection; a to that is empty or "closed" removes the connection.
func (m *Metrics) StateChanged(from, to string) {
	if m == nil {
		return
	}
	if from != "" && from != stateClosed {
		m.connections.state.of(from).Dec()
	}
	if to != "" && to != stateClosed {
		m.connections.state.of(to).Inc()
	}
}

// Ready observes the time from a GET until its connection was first ready. The id
// becomes an exemplar; it may be empty.
func (m *Metrics) Ready(d time.Duration, id string) {
	if m == nil {
		return
	}
	m.connections.ready.observe(d, id)
}

// Heartbeat counts a written heartbeat.
func (m *Metrics) Heartbeat() {
	if m == nil {
		return
	}
	m.connections.heartbeats.Inc()
}

// WriteTimeout counts a write that took longer than the write timeout.
func (m *Metrics) WriteTimeout() {
	if m == nil {
		return
	}
	m.connections.writeTimeouts.Inc()
}

// OutboxFull counts a message that found the outbox of its connection full and had to
// wait.
func (m *Metrics) OutboxFull() {
	if m == nil {
		return
	}
	m.connections.outboxFull.Inc()
}
