package metrics

import "github.com/prometheus/client_golang/prometheus"

// poolSeries are the series of warm servers, of the starts that wait for a turn, of the
// sessions, and of repeated requests.
type poolSeries struct {
	idle        prometheus.Gauge
	hit         lazyCounter
	miss        lazyCounter
	started     lazyCounter
	startFailed lazyCounter
	discarded   prometheus.Counter
	queued      prometheus.Gauge
	sessions    prometheus.Gauge
	repeated    prometheus.Counter
}

func newPoolSeries(b *builder) poolSeries {
	starts := b.counterVec("mcp_sse_pool_starts_total", "Starts of servers for the pool, by result.", "result")
	takes := b.counterVec("mcp_sse_pool_takes_total", "Connections that asked the pool for a server, by result.", "result")
	return poolSeries{
		idle:        b.gauge("mcp_sse_pool_idle", "Started servers that wait for a connection."),
		hit:         newLazyCounter(takes, "hit"),
		miss:        newLazyCounter(takes, "miss"),
		started:     newLazyCounter(starts, "ok"),
		startFailed: newLazyCounter(starts, "error"),
		discarded:   b.counter("mcp_sse_pool_discarded_total", "Servers of the pool that died or did not answer before they were taken."),
		queued:      b.gauge("mcp_sse_starts_waiting", "Starts of sessions that wait for others to end."),
		sessions:    b.gauge("mcp_sse_sessions", "Sessions with the server, from before their start until they have ended: a process, until it is reaped."),
		repeated:    b.counter("mcp_sse_requests_repeated_total", "Requests that were asked again because their session was lost."),
	}
}

// PoolIdle adds n to the servers in the pool; n is negative when servers leave it.
func (m *Metrics) PoolIdle(n int) {
	if m == nil {
		return
	}
	m.pool.idle.Add(float64(n))
}

// PoolTake counts a connection that asks the pool for a server. hit is true if it
// gets one.
func (m *Metrics) PoolTake(hit bool) {
	if m == nil {
		return
	}
	if hit {
		m.pool.hit.Inc()
		return
	}
	m.pool.miss.Inc()
}

// PoolStart counts a finished start of a server for the pool. ok is true if it
// worked.
func (m *Metrics) PoolStart(ok bool) {
	if m == nil {
		return
	}
	if ok {
		m.pool.started.Inc()
		return
	}
	m.pool.startFailed.Inc()
}

// PoolDiscarded counts a server that died in the pool or did not answer a ping.
func (m *Metrics) PoolDiscarded() {
	if m == nil {
		return
	}
	m.pool.discarded.Inc()
}

// StartQueued counts a start that begins to wait for a turn. One StartUnqueued must
// follow.
func (m *Metrics) StartQueued() {
	if m == nil {
		return
	}
	m.pool.queued.Inc()
}

// StartUnqueued counts a start that no longer waits.
func (m *Metrics) StartUnqueued() {
	if m == nil {
		return
	}
	m.pool.queued.Dec()
}

// SessionStarting counts a session that is about to start. One SessionEnded must
// follow.
func (m *Metrics) SessionStarting() {
	if m == nil {
		return
	}
	m.pool.sessions.Inc()
}

// SessionEnded counts a session that was not started after all, or has ended.
func (m *Metrics) SessionEnded() {
	if m == nil {
		return
	}
	m.pool.sessions.Dec()
}

// RequestRepeated counts a request that a new session gets because the old one was
// lost.
func (m *Metrics) RequestRepeated() {
	if m == nil {
		return
	}
	m.pool.repeated.Inc()
}
