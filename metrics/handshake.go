package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// handshakeSeries are the series of initializations.
type handshakeSeries struct {
	attempts prometheus.Counter
	done     map[handshakeEnd]prometheus.Counter
	rest     prometheus.Counter            // for results that are not in done
	duration closedSet[*histogram]         // by result
	taken    closedSet[prometheus.Counter] // by the source of the session
}

// handshakeEnd is the result of an initialization.
type handshakeEnd struct{ result, phase, reason string }

// handshakeEnds returns all results that can occur.
func handshakeEnds() []handshakeEnd {
	return []handshakeEnd{
		{HandshakeOK, "", ""},
		{HandshakeCanceled, "", ""},
		{HandshakeError, PhaseRequestCreation, ReasonStartFailed},
		{HandshakeError, PhaseRequestCreation, ReasonTimeout},
		{HandshakeError, PhaseRequestCreation, ReasonDenied},
		{HandshakeError, PhaseRequestCreation, ReasonGaveUp},
		{HandshakeError, PhaseRequestProcessing, ReasonTimeout},
		{HandshakeError, PhaseRequestProcessing, ReasonStartFailed},
		{HandshakeError, PhaseRequestProcessing, ReasonDenied},
		{HandshakeError, PhaseRequestProcessing, ReasonRejected},
		{HandshakeError, PhaseRequestProcessing, ReasonBadAnswer},
		{HandshakeError, PhaseResponseSending, ReasonSendFailed},
	}
}

func newHandshakeSeries(b *builder) handshakeSeries {
	d := b.histogramVec("mcp_sse_handshake_duration_seconds", "Time that initializations took, by result.",
		fineBuckets(), "result")
	v := b.counterVec("mcp_sse_handshakes_total",
		"Initializations that ended, or failed for a client, by result, and by the phase and reason of the failure.",
		"result", "phase", "reason")
	s := handshakeSeries{
		attempts: b.counter("mcp_sse_handshake_attempts_total", "Starts of sessions, retries included."),
		done:     make(map[handshakeEnd]prometheus.Counter),
		rest:     v.WithLabelValues(other, other, other),
		duration: newClosedSet(handshakeResults(), other,
			func(result string) *histogram { return newHistogram(d.WithLabelValues(result)) }),
		taken: b.counters("mcp_sse_sessions_taken_total", "Connections that got a session, by where it came from.",
			"from", []string{FromStart, FromPool, FromShared}),
	}
	for _, end := range handshakeEnds() { // from the start: an alert must see the first failure
		s.done[end] = v.WithLabelValues(end.result, end.phase, end.reason)
	}
	return s
}

// HandshakeAttempt counts a start of a session.
func (m *Metrics) HandshakeAttempt() {
	if m == nil {
		return
	}
	m.handshakes.attempts.Inc()
}

// HandshakeDone counts an initialization that ended, or that failed for a client
// while the server still starts. result is one of the Handshake constants; phase and
// reason are Phase and Reason constants if result is HandshakeError, else empty. The
// id becomes an exemplar; it may be empty.
func (m *Metrics) HandshakeDone(result, phase, reason string, d time.Duration, id string) {
	if m == nil {
		return
	}
	c, ok := m.handshakes.done[handshakeEnd{result, phase, reason}]
	if !ok {
		c = m.handshakes.rest
	}
	c.Inc()
	m.handshakes.duration.of(result).observe(d, id)
}

// SessionTaken counts a connection that got a session, by one of the From
// constants.
func (m *Metrics) SessionTaken(from string) {
	if m == nil {
		return
	}
	m.handshakes.taken.of(from).Inc()
}

// gateSeries are the series of messages that wait for the handshake.
type gateSeries struct {
	depth    prometheus.Gauge
	wait     *histogram
	rejected closedSet[prometheus.Counter]
}

func newGateSeries(b *builder) gateSeries {
	return gateSeries{
		depth: b.gauge("mcp_sse_gate_depth", "Messages that wait for a handshake now."),
		wait: b.histogram("mcp_sse_gate_wait_seconds",
			"Time that messages waited for a handshake, the rejected ones included.", fineBuckets()),
		rejected: b.counters("mcp_sse_gate_rejected_total",
			"Messages that were refused because the handshake was not finished, by reason.", "reason", gateReasons()),
	}
}

// GateQueued counts a message that begins to wait for the handshake. One GateReleased
// or GateRejected must follow.
func (m *Metrics) GateQueued() {
	if m == nil {
		return
	}
	m.gate.depth.Inc()
}

// GateReleased counts a message that left the gate for the session, and its wait.
func (m *Metrics) GateReleased(wait time.Duration) {
	if m == nil {
		return
	}
	m.gate.depth.Dec()
	m.gate.wait.observe(wait, "")
}

// GateRejected counts a refused message, by one of the Gate constants, and its wait.
// A message refused with GateFull never waited: it changes neither the depth nor the
// histogram of waits.
func (m *Metrics) GateRejected(reason string, wait time.Duration) {
	if m == nil {
		return
	}
	m.gate.rejected.of(reason).Inc()
	if reason == GateFull {
		return
	}
	m.gate.depth.Dec()
	m.gate.wait.observe(wait, "")
}
