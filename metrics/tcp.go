package metrics

import "github.com/prometheus/client_golang/prometheus"

// Why a TCP connection was closed at once: the reasons of [TCP.Refused].
const (
	TCPMax   = "max_tcp_connections" // too many are open
	TCPPerIP = "per_ip"              // too many are open from this address
)

// TCP has the series of the TCP connections of a program, of all servers and addresses
// together. Its methods are safe for concurrent use, and do nothing on a nil *TCP.
type TCP struct {
	open    prometheus.Gauge
	refused closedSet[prometheus.Counter]
}

// NewTCP makes the series and registers them with reg. A second call with the same
// registry returns the TCP of the first.
func NewTCP(reg *prometheus.Registry) (*TCP, error) {
	var b builder
	t := &TCP{
		open:    b.gauge("mcp_sse_tcp_connections", "Open TCP connections of clients and operators."),
		refused: b.counters("mcp_sse_tcp_refused_total", "TCP connections that were closed at once, by the limit.", "reason", []string{TCPMax, TCPPerIP}),
	}
	return register(reg, t, b.all)
}

// Opened counts a TCP connection. One Closed must follow.
func (t *TCP) Opened() {
	if t != nil {
		t.open.Inc()
	}
}

// Closed counts the end of a TCP connection.
func (t *TCP) Closed() {
	if t != nil {
		t.open.Dec()
	}
}

// Refused counts a TCP connection over a limit.
func (t *TCP) Refused(reason string) {
	if t != nil {
		t.refused.of(reason).Inc()
	}
}
