package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// childSeries are the series of servers that run as child processes, and of
// sessions with any server.
type childSeries struct {
	running       prometheus.Gauge
	started       prometheus.Counter
	startFailed   prometheus.Counter
	startTime     *histogram
	exits         closedSet[lazyCounter]
	stderrBytes   prometheus.Counter
	stderrDropped prometheus.Counter
	invalidLines  prometheus.Counter
	restarts      prometheus.Counter
}

func newChildSeries(b *builder) childSeries {
	starts := b.counterVec("mcp_sse_child_starts_total", "Starts of child processes, by result.", "result")
	return childSeries{
		running:     b.gauge("mcp_sse_children", "Child processes that run."),
		started:     starts.WithLabelValues("ok"),
		startFailed: starts.WithLabelValues("error"),
		startTime:   b.histogram("mcp_sse_child_start_seconds", "Time to start a child process.", fineBuckets()),
		exits: b.lazyCounters("mcp_sse_child_exits_total", "Child processes that ended, by reason.",
			"reason", childReasons()),
		stderrBytes: b.counter("mcp_sse_child_stderr_bytes_total", "Bytes that child processes wrote to stderr."),
		stderrDropped: b.counter("mcp_sse_child_stderr_dropped_lines_total",
			"Lines of stderr that came too fast to be logged."),
		invalidLines: b.counter("mcp_sse_child_invalid_lines_total",
			"Lines on the stdout of child processes that were no JSON-RPC message."),
		restarts: b.counter("mcp_sse_session_restarts_total", "Sessions that were lost and replaced by a new one."),
	}
}

// ChildStarted counts a child process that has started, and the time its start took.
// One ChildExited must follow.
func (m *Metrics) ChildStarted(d time.Duration) {
	if m == nil {
		return
	}
	m.children.started.Inc()
	m.children.running.Inc()
	m.children.startTime.observe(d, "")
}

// ChildStartFailed counts a child process that did not start.
func (m *Metrics) ChildStartFailed() {
	if m == nil {
		return
	}
	m.children.startFailed.Inc()
}

// ChildExited counts the end of a child process, by one of the constants ChildOK,
// ChildError, ChildSignal, ChildClosed.
func (m *Metrics) ChildExited(reason string) {
	if m == nil {
		return
	}
	m.children.exits.of(reason).Inc()
	m.children.running.Dec()
}

// ChildStderr counts bytes that a child process wrote to stderr.
func (m *Metrics) ChildStderr(bytes int) {
	if m == nil {
		return
	}
	add(m.children.stderrBytes, bytes)
}

// ChildStderrDropped counts lines of stderr that were not logged.
func (m *Metrics) ChildStderrDropped(lines int) {
	if m == nil {
		return
	}
	add(m.children.stderrDropped, lines)
}

// ChildInvalidLine counts a line on a child's stdout that is not a JSON-RPC message.
func (m *Metrics) ChildInvalidLine() {
	if m == nil {
		return
	}
	m.children.invalidLines.Inc()
}

// SessionRestarted counts a lost session that a new one has replaced.
func (m *Metrics) SessionRestarted() {
	if m == nil {
		return
	}
	m.children.restarts.Inc()
}
