package metrics

import "github.com/prometheus/client_golang/prometheus"

// How a session matched a response of the server: values of by in
// [Metrics.ResponseMatched].
const (
	MatchedID     = "id"     // by its id
	MatchedFIFO   = "fifo"   // without an id, to the only request
	MatchedOrphan = "orphan" // to no request: late, repeated or unknown
)

func matches() []string { return []string{MatchedID, MatchedFIFO, MatchedOrphan} }

// multiplexSeries are the series of sessions with servers.
type multiplexSeries struct {
	matched   closedSet[lazyCounter]
	waits     prometheus.Counter
	queueFull prometheus.Counter
	suspected prometheus.Counter
	cleared   prometheus.Counter
	hung      prometheus.Counter
}

func newMultiplexSeries(b *builder) multiplexSeries {
	return multiplexSeries{
		matched: b.lazyCounters("mcp_sse_responses_matched_total", "Responses of servers, by how their request was found.",
			"by", matches()),
		waits: b.counter("mcp_sse_requests_queued_total",
			"Requests that had to wait for their turn on a session."),
		queueFull: b.counter("mcp_sse_queue_full_total",
			"Requests that were refused because too many wait for their turn on a session."),
		suspected: b.counter("mcp_sse_hang_suspected_total", "Times that a session was suspected to hang."),
		cleared:   b.counter("mcp_sse_hang_cleared_total", "Times that a suspected server turned out to be alive."),
		hung:      b.counter("mcp_sse_hang_ended_total", "Sessions that were ended because their server hangs."),
	}
}

// ResponseMatched counts a response of a server, by one of the Matched constants.
func (m *Metrics) ResponseMatched(by string) {
	if m == nil {
		return
	}
	m.multiplex.matched.of(by).Inc()
}

// RequestWaits counts a request that has to wait in the queue of a session.
func (m *Metrics) RequestWaits() {
	if m == nil {
		return
	}
	m.multiplex.waits.Inc()
}

// QueueFull counts a request that found the queue of its session full.
func (m *Metrics) QueueFull() {
	if m == nil {
		return
	}
	m.multiplex.queueFull.Inc()
}

// HangSuspected counts a session whose server the gateway begins to suspect.
func (m *Metrics) HangSuspected() {
	if m == nil {
		return
	}
	m.multiplex.suspected.Inc()
}

// HangCleared counts a suspicion that turned out wrong or is over.
func (m *Metrics) HangCleared() {
	if m == nil {
		return
	}
	m.multiplex.cleared.Inc()
}

// Hung counts a session that the gateway ends because its server hangs.
func (m *Metrics) Hung() {
	if m == nil {
		return
	}
	m.multiplex.hung.Inc()
}
