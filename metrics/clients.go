package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	otherValue = "_other" // replaces a method or an error outside the lists
	// networkTransport is the label network_transport, which the OpenTelemetry
	// conventions require.
	networkTransport = "tcp"
	stateClosed      = "closed"
)

// clientSeries are the series of connections, and of their messages and requests. Each
// transport has its own.
type clientSeries struct {
	open          prometheus.Gauge
	opened        prometheus.Counter
	closed        *prometheus.CounterVec
	rejected      *prometheus.CounterVec
	postsRejected *prometheus.CounterVec
	state         *prometheus.GaugeVec
	duration      *prometheus.HistogramVec
	ready         prometheus.Histogram
	heartbeats    prometheus.Counter
	messages      *prometheus.CounterVec
	messageBytes  *prometheus.CounterVec
	inFlight      prometheus.Gauge
	operations    *prometheus.HistogramVec
}

func newClientSeries(f *factory) *clientSeries {
	s := &clientSeries{
		open:   f.gauge("mcp_sse_connections", "Open connections."),
		opened: f.counter("mcp_sse_connections_opened_total", "Connections opened."),
		closed: f.counters("mcp_sse_connections_closed_total", "Connections closed.",
			"reason", ClosedClient, ClosedSlow, ClosedWriteTimeout, ClosedWriteError, ClosedIdle, ClosedShutdown,
			ClosedServer, ClosedRevoked, ClosedExpired, ClosedError),
		rejected: f.counters("mcp_sse_connections_rejected_total", "Connections refused, and requests other than POST.",
			"reason", RejectedMaxConnections, RejectedPerIP, RejectedRate, RejectedDraining, RejectedBudget,
			RejectedOrigin, RejectedHost, RejectedAuth, RejectedBadRequest, RejectedNotFound, RejectedMethod,
			RejectedUnknownConnection),
		postsRejected: f.counters("mcp_sse_posts_rejected_total", "POSTs refused.",
			"reason", RejectedBudget, RejectedOrigin, RejectedHost, RejectedAuth, RejectedBadRequest, RejectedNotFound,
			RejectedMethod, RejectedUnknownConnection, PostTooLarge, PostInvalidJSON, PostInvalidRequest, PostMediaType,
			PostClosed, PostNotAcceptable, PostNoSession, PostBusy),
		state: f.gaugeVec("mcp_sse_connection_state", "Open connections, by state.", "state"),
		duration: f.histogramVec("mcp_server_session_duration_seconds",
			"How long connections lasted that were ready once.",
			otelBuckets(), "network_transport", "error_type"),
		ready: f.histogram("mcp_sse_ready_seconds", "Time from a GET until its connection was ready.", fineBuckets()),

		heartbeats: f.counter("mcp_sse_heartbeats_total", "Heartbeats written to streams."),
		messages: f.counters("mcp_sse_messages_total", "JSON-RPC messages from and to clients.", "direction",
			"in", "out"),
		messageBytes: f.counters("mcp_sse_message_bytes_total", "Bytes of these messages.", "direction", "in", "out"),
		inFlight:     f.gauge("mcp_sse_requests_in_flight", "Requests that are not answered yet."),
		operations: f.histogramVec("mcp_server_operation_duration_seconds", "Time until requests were answered.",
			otelBuckets(), "mcp_method_name", "error_type", "network_transport"),
	}
	for _, state := range []string{"initializing", "ready", "failed", "resting", "draining"} {
		s.state.WithLabelValues(state)
	}
	return s
}

// ConnectionOpened counts a connection that the limits have admitted.
func (m *Metrics) ConnectionOpened() {
	m = m.live()
	m.opened.Inc()
	m.open.Inc()
}

// ConnectionClosed counts the end of an opened connection, by why it ended.
func (m *Metrics) ConnectionClosed(reason string) {
	m = m.live()
	m.closed.WithLabelValues(reason).Inc()
	m.open.Dec()
}

// ConnectionLasted observes the age of a closed connection that was ready once. reason
// is that of ConnectionClosed.
func (m *Metrics) ConnectionLasted(reason string, age time.Duration) {
	m = m.live()
	errorType := reason
	switch reason {
	case ClosedClient, ClosedIdle, ClosedShutdown, ClosedServer, ClosedRevoked, ClosedExpired:
		errorType = ""
	}
	m.duration.WithLabelValues(networkTransport, errorType).Observe(age.Seconds())
}

// ConnectionRejected counts a GET that got no stream, or a request whose method is
// not POST, by one of the Rejected constants.
func (m *Metrics) ConnectionRejected(reason string) { m.live().rejected.WithLabelValues(reason).Inc() }

// PostRejected counts a POST that got no 202, by one of the Rejected or Post
// constants.
func (m *Metrics) PostRejected(reason string) { m.live().postsRejected.WithLabelValues(reason).Inc() }

// StateChanged moves a connection from one state to another. An empty from is a new
// connection; a to that is empty or "closed" removes the connection.
func (m *Metrics) StateChanged(from, to string) {
	m = m.live()
	if from != "" && from != stateClosed {
		m.state.WithLabelValues(from).Dec()
	}
	if to != "" && to != stateClosed {
		m.state.WithLabelValues(to).Inc()
	}
}

// Ready observes the time from a GET until its connection was first ready.
func (m *Metrics) Ready(d time.Duration) { m.live().ready.Observe(d.Seconds()) }

// Heartbeat counts a written heartbeat.
func (m *Metrics) Heartbeat() { m.live().heartbeats.Inc() }

// MessageIn counts a JSON-RPC message from a client, and its size in bytes.
func (m *Metrics) MessageIn(bytes int) { m.message("in", bytes) }

// MessageOut counts a JSON-RPC message to a client, and its size in bytes.
func (m *Metrics) MessageOut(bytes int) { m.message("out", bytes) }

func (m *Metrics) message(direction string, bytes int) {
	m = m.live()
	m.messages.WithLabelValues(direction).Inc()
	m.messageBytes.WithLabelValues(direction).Add(float64(bytes))
}

// RequestStarted counts a client's request that begins. One RequestDone must follow.
func (m *Metrics) RequestStarted() { m.live().inFlight.Inc() }

// RequestDone observes the duration of a client's request. errorType is empty, a
// JSON-RPC error code in decimal, or one of the Error constants. traceID, unless empty, is
// that of the request's trace, the exemplar of the observation.
func (m *Metrics) RequestDone(method, errorType string, d time.Duration, traceID string) {
	m = m.live()
	m.inFlight.Dec()
	var exemplar prometheus.Labels
	if traceID != "" {
		exemplar = prometheus.Labels{"trace_id": traceID}
	}
	observer := m.operations.WithLabelValues(oneOf(methods, method), oneOf(errorTypes, errorType), networkTransport)
	observer.(prometheus.ExemplarObserver).ObserveWithExemplar(d.Seconds(), exemplar)
	m.recent.add(Requests)
	if errorType != "" && errorType != ErrorCanceled {
		m.recent.add(Errors)
	}
}

// oneOf returns value if it is in the list, else otherValue.
func oneOf(list []string, value string) string {
	if slices.Contains(list, value) {
		return value
	}
	return otherValue
}

// methods are those of requests from client to server in all MCP revisions from
// 2024-11-05 to 2026-07-28, the frequent ones first. Notifications have no duration.
var methods = []string{
	"tools/call", "tools/list", "ping", "initialize",
	"resources/read", "resources/list", "resources/templates/list",
	"resources/subscribe", "resources/unsubscribe",
	"prompts/get", "prompts/list", "completion/complete", "logging/setLevel",
	"server/discover", "subscriptions/listen",
	"tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "tasks/update",
}

// errorTypes are the values of error_type; the empty one means no error. The codes are
// those of JSON-RPC 2.0, of MCP (-32002 resource not found, -32042 URL elicitation
// required), and 0, which go-sdk servers send for errors without a code.
var errorTypes = []string{
	"", ErrorTool,
	"-32700", "-32600", "-32601", "-32602", "-32603", "-32002", "-32042", "0",
	ErrorTimeout, ErrorSessionLost, ErrorCanceled, ErrorInitialization,
	ErrorClosed, ErrorBusy, ErrorDraining, ErrorInvalid, ErrorServerChanged,
}
