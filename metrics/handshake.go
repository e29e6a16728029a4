package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// handshakeSeries are the series of the gateway's own initialize.
type handshakeSeries struct {
	attempts prometheus.Counter
	done     closedSet[closedSet[prometheus.Counter]] // by result, then phase
	duration closedSet[*histogram]                    // by result
}

func newHandshakeSeries(b *builder) handshakeSeries {
	d := b.histogramVec("mcp_sse_handshake_duration_seconds", "Time that handshakes took, by result.",
		fineBuckets(), "result")
	return handshakeSeries{
		attempts: b.counter("mcp_sse_handshake_attempts_total", "Handshakes begun, retries included."),
		done:     newHandshakesDone(b),
		duration: newClosedSet(handshakeResults(), other,
			func(result string) *histogram { return newHistogram(d.WithLabelValues(result)) }),
	}
}

// newHandshakesDone gives errors and cancellations a counter for each phase;
// what succeeded has no phase, and neither has what is none of these results.
func newHandshakesDone(b *builder) closedSet[closedSet[prometheus.Counter]] {
	v := b.counterVec("mcp_sse_handshakes_total", "Handshakes that ended, by result and by the phase in which they failed.",
		"result", "phase")
	return newClosedSet(handshakeResults(), other, func(result string) closedSet[prometheus.Counter] {
		if result != HandshakeError && result != HandshakeCanceled {
			return closedSet[prometheus.Counter]{rest: v.WithLabelValues(result, "")}
		}
		return newClosedSet(phases(), other,
			func(phase string) prometheus.Counter { return v.WithLabelValues(result, phase) })
	})
}

// HandshakeAttempt counts a handshake that begins.
func (m *Metrics) HandshakeAttempt() {
	if m == nil {
		return
	}
	m.handshakes.attempts.Inc()
}

// HandshakeDone counts a handshake that ended: its result is one of the
// Handshake constants, its phase empty or one of the Phase constants. The id
// becomes an exemplar; it may be empty.
func (m *Metrics) HandshakeDone(result, phase string, d time.Duration, id string) {
	if m == nil {
		return
	}
	m.handshakes.done.of(result).of(phase).Inc()
	m.handshakes.duration.of(result).observe(d, id)
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
			"Messages that were refused for want of a finished handshake, by reason.", "reason", gateReasons()),
	}
}

// GateQueued counts a message that begins to wait for the handshake. It is
// followed by one GateReleased or GateRejected.
func (m *Metrics) GateQueued() {
	if m == nil {
		return
	}
	m.gate.depth.Inc()
}

// GateReleased counts a message whose wait ended well.
func (m *Metrics) GateReleased(wait time.Duration) {
	if m == nil {
		return
	}
	m.gate.depth.Dec()
	m.gate.wait.observe(wait, "")
}

// GateRejected counts a message that was refused, by one of the Gate constants.
// What was refused as GateFull never waited: it leaves the depth and the
// histogram of waits alone.
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
