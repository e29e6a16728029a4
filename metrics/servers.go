package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// serverSeries are the series of sessions with servers: their starts, the messages
// that wait or are dropped, child processes, remote servers, and the bytes held.
type serverSeries struct {
	handshakes        *prometheus.CounterVec
	handshakeDuration *prometheus.HistogramVec
	gateDepth         prometheus.Gauge
	gateWait          prometheus.Histogram
	gateRejected      *prometheus.CounterVec
	dropped           *prometheus.CounterVec
	matched           *prometheus.CounterVec
	serialized        prometheus.Gauge
	maxConnections    prometheus.Gauge
	sessions          prometheus.Gauge
	restarts          prometheus.Counter
	lostToStart       prometheus.Counter
	repeated          prometheus.Counter
	remembered        prometheus.Counter
	startsWaiting     prometheus.Gauge
	poolIdle          prometheus.Gauge
	poolTakes         *prometheus.CounterVec
	children          prometheus.Gauge
	childMemory       prometheus.Gauge // measure sets it
	loginNeeded       prometheus.Gauge // needsLogin sets it
	needsLogin        atomic.Pointer[func() bool]
	measure           atomic.Pointer[func() int64]
	childStarts       *prometheus.CounterVec
	childExits        *prometheus.CounterVec
	remoteResponses   *prometheus.CounterVec
	tools             prometheus.Gauge
	toolDescriptions  prometheus.Gauge
	toolName          prometheus.Gauge
	members           *viewMembers
	held              prometheus.Gauge
	overBudget        *prometheus.CounterVec
	buildInfo         *prometheus.GaugeVec
	recent            recent
}

func newServerSeries(f *factory) *serverSeries {
	s := &serverSeries{
		handshakes: f.counterVec("mcp_sse_handshakes_total",
			"Initializations that ended, or failed for a client.",
			"result", "phase", "reason"),
		handshakeDuration: f.histogramVec("mcp_sse_handshake_duration_seconds", "Time that initializations took.",
			fineBuckets(), "result"),
		gateDepth: f.gauge("mcp_sse_gate_depth", "Messages that wait for a handshake."),
		gateWait: f.histogram("mcp_sse_gate_wait_seconds",
			"Time that messages waited for a handshake.", fineBuckets()),
		gateRejected: f.counters("mcp_sse_gate_rejected_total", "Messages refused because there was no session yet.",
			"reason", GateFull, GateBudget, GateTimeout, GateFailed, GateCanceled, GateClosed),
		dropped: f.counters("mcp_sse_messages_dropped_total", "Messages thrown away.",
			"reason", DroppedUnknownResponse, DroppedUnknownRequest, DroppedInvalidMessage, DroppedTooLong,
			DroppedNotReady,
			DroppedUnknownProgress, DroppedUnattributed, DroppedUndelivered, DroppedShared, DroppedClientGone,
			DroppedLeftOut),
		matched: f.counters("mcp_sse_responses_matched_total", "Responses of servers, by how their request was found.",
			"by", MatchedID, MatchedString, MatchedFIFO, MatchedOrphan),
		serialized: f.gauge("mcp_sse_server_serialized",
			"1 once the server has not named an answer: such a session gets one request at a time."),

		maxConnections: f.gauge("mcp_sse_max_connections", "How many connections may be open; 0: any number."),
		sessions: f.gauge("mcp_sse_sessions",
			"Sessions with the server, from before their start until their end."),
		restarts: f.counter("mcp_sse_session_restarts_total", "Lost sessions that a new one has replaced."),
		lostToStart: f.counter("mcp_sse_clients_lost_to_start_total",
			"Clients that waited for a second or more, and left before their server was ready."),
		repeated: f.counter("mcp_sse_requests_repeated_total",
			"Requests repeated because their session was lost."),
		remembered: f.counter("mcp_sse_answers_from_memory_total",
			"Requests for lists that were answered from memory, while the connection had no session."),
		startsWaiting: f.gauge("mcp_sse_starts_waiting", "Starts that wait for other starts to end."),
		poolIdle:      f.gauge("mcp_sse_pool_idle", "Started servers that wait for a connection."),
		poolTakes: f.counters("mcp_sse_pool_takes_total", "Connections that asked the pool for a server.",
			"result", "hit", "miss"),

		children: f.gauge("mcp_sse_children", "Child processes that run."),
		childMemory: f.gauge("mcp_sse_children_resident_bytes",
			"Resident memory of child processes and of those that they have started, on Linux; elsewhere 0."),
		childStarts: f.counters("mcp_sse_child_starts_total", "Starts of child processes.",
			"result", "ok", "error"),
		childExits: f.counters("mcp_sse_child_exits_total", "Child processes that ended.",
			"reason", ChildOK, ChildError, ChildSignal, ChildClosed),
		remoteResponses: f.counters("mcp_sse_remote_responses_total", "HTTP responses of remote servers.",
			"status", "2xx", "3xx", "4xx", "5xx", "none"),
		loginNeeded: f.gauge("mcp_sse_login_needed",
			"1 while the remote server waits for a login: nobody is logged in there, or the login has ended."),
		tools: f.gauge("mcp_sse_tools", "Tools that the server last listed, as far as they are offered."),
		toolDescriptions: f.gauge("mcp_sse_tool_description_characters",
			"Characters of the descriptions of these tools."),
		toolName: f.gauge("mcp_sse_tool_name_characters", "Characters of the longest name of these tools."),
		members: f.viewMembers("mcp_sse_view_members",
			"1 for the state of a member of a view, 0 for the other states."),
		held: f.gauge("mcp_sse_held_bytes",
			"Bytes of bodies, unanswered requests, messages that wait and events that are kept."),
		overBudget: f.counters("mcp_sse_over_budget_total",
			"Work refused because the process holds as many bytes as it may.",
			"holder", HeldPost, HeldConnection, HeldGate, HeldOutbox),
		buildInfo: f.gaugeVec("mcp_sse_build_info", "Always 1; the labels say which build runs.",
			"version", "revision", "goversion"),
	}
	for _, end := range handshakeEnds {
		s.handshakes.WithLabelValues(end[:]...)
	}
	return s
}

// handshakeEnds are the values of result, phase and reason that occur together.
var handshakeEnds = [][3]string{
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

// HandshakeDone counts an initialization that ended, or that failed for a client
// while the server still starts. result is one of the Handshake constants; phase and
// reason are Phase and Reason constants if result is HandshakeError, else empty.
func (m *Metrics) HandshakeDone(result, phase, reason string, d time.Duration) {
	m = m.live()
	m.handshakes.WithLabelValues(result, phase, reason).Inc()
	m.handshakeDuration.WithLabelValues(result).Observe(d.Seconds())
	if result == HandshakeOK {
		m.recent.add(Handshakes)
	}
}

// GateQueued counts a message that begins to wait for the handshake. One GateReleased
// or GateRejected must follow.
func (m *Metrics) GateQueued() { m.live().gateDepth.Inc() }

// GateReleased counts a message that left the gate for the session, and its wait.
func (m *Metrics) GateReleased(wait time.Duration) {
	m = m.live()
	m.gateDepth.Dec()
	m.gateWait.Observe(wait.Seconds())
}

// GateRefused counts a message that was refused at once, by one of the Gate constants.
func (m *Metrics) GateRefused(reason string) { m.live().gateRejected.WithLabelValues(reason).Inc() }

// GateRejected counts a message that was refused after a wait, by one of the Gate
// constants.
func (m *Metrics) GateRejected(reason string, wait time.Duration) {
	m.GateRefused(reason)
	m.GateReleased(wait)
}

// Dropped counts a dropped message, by one of the Dropped constants.
func (m *Metrics) Dropped(reason string) { m.live().dropped.WithLabelValues(reason).Inc() }

// ResponseMatched counts a response of a server, by one of the Matched constants.
func (m *Metrics) ResponseMatched(by string) { m.live().matched.WithLabelValues(by).Inc() }

// ServerReplaced forgets what is known of the server, because there is another one.
func (m *Metrics) ServerReplaced() {
	m = m.live()
	for _, g := range []prometheus.Gauge{m.serialized, m.tools, m.toolDescriptions, m.toolName} {
		g.Set(0)
	}
}

// ServerSerialized notes that the server has not named an answer: it gets one request at a
// time in that session.
func (m *Metrics) ServerSerialized() { m.live().serialized.Set(1) }

// MaxConnections records the limit of open connections, 0 for none.
func (m *Metrics) MaxConnections(n int) { m.live().maxConnections.Set(float64(max(0, n))) }

// Sessions adds n to the sessions, from before their start until their end.
func (m *Metrics) Sessions(n int) { m.live().sessions.Add(float64(n)) }

// SessionRestarted counts a lost session that a new one has replaced.
func (m *Metrics) SessionRestarted() { m.live().restarts.Inc() }

// ClientLostToStart counts a client that left before its server was ready.
func (m *Metrics) ClientLostToStart() { m.live().lostToStart.Inc() }

// RequestRepeated counts a request that a new session gets because the old one was
// lost.
func (m *Metrics) RequestRepeated() { m.live().repeated.Inc() }

// AnsweredFromMemory counts a request for a list that was answered without the server.
func (m *Metrics) AnsweredFromMemory() { m.live().remembered.Inc() }

// StartsWaiting adds n to the starts that wait for a turn.
func (m *Metrics) StartsWaiting(n int) { m.live().startsWaiting.Add(float64(n)) }

// PoolIdle adds n to the servers in the pool; n is negative when servers leave it.
func (m *Metrics) PoolIdle(n int) { m.live().poolIdle.Add(float64(n)) }

// PoolTake counts a connection that asks the pool for a server. hit is true if it
// gets one.
func (m *Metrics) PoolTake(hit bool) {
	m.live().poolTakes.WithLabelValues(map[bool]string{true: "hit", false: "miss"}[hit]).Inc()
}

// ChildStarted counts a child process that has started. One ChildExited must follow.
func (m *Metrics) ChildStarted() {
	m = m.live()
	m.childStarts.WithLabelValues("ok").Inc()
	m.children.Inc()
}

// MeasureChildren makes measure tell the memory of child processes, in bytes, whenever somebody reads the
// series. It must be safe for concurrent use.
func (m *Metrics) MeasureChildren(measure func() int64) {
	if m != nil && measure != nil {
		m.measure.Store(&measure)
	}
}

// MeasureLogin makes needed tell whether the remote server waits for a login, whenever somebody reads the series. It
// must be safe for concurrent use.
func (m *Metrics) MeasureLogin(needed func() bool) {
	if m != nil && needed != nil {
		m.needsLogin.Store(&needed)
	}
}

// measureNow sets the gauges that are asked for: the memory of child processes, and whether a login is needed.
func (s *serverSeries) measureNow() {
	if needed := s.needsLogin.Load(); needed != nil {
		value := 0.0
		if (*needed)() {
			value = 1
		}
		s.loginNeeded.Set(value)
	}
	if measure := s.measure.Load(); measure != nil {
		s.childMemory.Set(float64((*measure)()))
	}
}

// ChildStartFailed counts a child process that did not start.
func (m *Metrics) ChildStartFailed() { m.live().childStarts.WithLabelValues("error").Inc() }

// ChildExited counts the end of a child process, by one of the Child constants.
func (m *Metrics) ChildExited(reason string) {
	m = m.live()
	m.childExits.WithLabelValues(reason).Inc()
	m.children.Dec()
}

// RemoteResponse counts an HTTP response of a remote server by its status code, or a
// missing one if code is 0.
func (m *Metrics) RemoteResponse(code int) {
	m = m.live()
	class := "none"
	if code > 0 {
		class = strconv.Itoa(min(max(code/100, 2), 5)) + "xx"
	}
	m.remoteResponses.WithLabelValues(class).Inc()
}

// Tools records the size of the server's list of tools.
func (m *Metrics) Tools(n, descriptions, longestName int) {
	m = m.live()
	m.tools.Set(float64(n))
	m.toolDescriptions.Set(float64(descriptions))
	m.toolName.Set(float64(longestName))
}

// Held adds n to the bytes held; n is negative when they are given back.
func (m *Metrics) Held(n int) { m.live().held.Add(float64(n)) }

// OverBudget counts work that was refused because the process holds as many bytes as
// it may, by one of the Held constants.
func (m *Metrics) OverBudget(holder string) { m.live().overBudget.WithLabelValues(holder).Inc() }
