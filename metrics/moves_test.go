package metrics_test

import (
	"time"

	"github.com/mcp-sse/mcp-sse/metrics"
)

const second = time.Second

// moves lists the series that a method must move; it may move no others. Of methods that
// only count one thing there is an example or none.
var moves = []struct {
	name string
	do   func(*metrics.Metrics)
	want map[string]float64
}{
	{"ConnectionClosed", func(m *metrics.Metrics) { m.ConnectionClosed("client") }, map[string]float64{
		"mcp_sse_connections_closed_total{reason=client}": 1, "mcp_sse_connections{}": -1,
	}},
	{"ConnectionLasted as it should", func(m *metrics.Metrics) { m.ConnectionLasted("client", 3*second) }, map[string]float64{
		"mcp_server_session_duration_seconds{network_transport=tcp}":     1,
		"mcp_server_session_duration_seconds_sum{network_transport=tcp}": 3,
	}},
	{"ConnectionLasted by an error", func(m *metrics.Metrics) { m.ConnectionLasted("slow", 3*second) }, map[string]float64{
		"mcp_server_session_duration_seconds{error_type=slow,network_transport=tcp}":     1,
		"mcp_server_session_duration_seconds_sum{error_type=slow,network_transport=tcp}": 3,
	}},
	{"StateChanged of a new connection", func(m *metrics.Metrics) { m.StateChanged("", "initializing") }, map[string]float64{
		"mcp_sse_connection_state{state=initializing}": 1,
	}},
	{"StateChanged", func(m *metrics.Metrics) { m.StateChanged("initializing", "ready") }, map[string]float64{
		"mcp_sse_connection_state{state=initializing}": -1, "mcp_sse_connection_state{state=ready}": 1,
	}},
	{"StateChanged to closed", func(m *metrics.Metrics) { m.StateChanged("draining", "closed"); m.StateChanged("closed", "") }, map[string]float64{
		"mcp_sse_connection_state{state=draining}": -1,
	}},
	{"HandshakeDone", func(m *metrics.Metrics) {
		m.HandshakeDone(metrics.HandshakeError, metrics.PhaseRequestProcessing, metrics.ReasonRejected, second)
	}, map[string]float64{
		"mcp_sse_handshakes_total{phase=request_processing,reason=rejected,result=error}": 1,
		"mcp_sse_handshake_duration_seconds{result=error}":                                1,
		"mcp_sse_handshake_duration_seconds_sum{result=error}":                            1,
	}},
	{"GateRefused", func(m *metrics.Metrics) { m.GateRefused(metrics.GateFull) }, map[string]float64{
		"mcp_sse_gate_rejected_total{reason=full}": 1,
	}},
	{"GateRejected", func(m *metrics.Metrics) { m.GateRejected(metrics.GateTimeout, second) }, map[string]float64{
		"mcp_sse_gate_rejected_total{reason=timeout}": 1, "mcp_sse_gate_depth{}": -1,
		"mcp_sse_gate_wait_seconds{}": 1, "mcp_sse_gate_wait_seconds_sum{}": 1,
	}},
	{"MessageOut", func(m *metrics.Metrics) { m.MessageOut(7) }, map[string]float64{
		"mcp_sse_messages_total{direction=out}": 1, "mcp_sse_message_bytes_total{direction=out}": 7,
	}},
	{"RequestDone", func(m *metrics.Metrics) { m.RequestDone("tools/call", "", second) }, operation("tools/call", "", 1)},
	{"RequestDone with a code", func(m *metrics.Metrics) { m.RequestDone("tools/list", "-32601", second) },
		operation("tools/list", "-32601", 1)},
	{"RequestDone with an unknown method and code", func(m *metrics.Metrics) { m.RequestDone("x/y", "-32099", second) },
		operation("_other", "_other", 1)},
	{"ChildExited", func(m *metrics.Metrics) { m.ChildExited(metrics.ChildSignal) }, map[string]float64{
		"mcp_sse_child_exits_total{reason=signal}": 1, "mcp_sse_children{}": -1,
	}},
	{"RemoteResponse", func(m *metrics.Metrics) {
		for _, code := range []int{200, 202, 307, 404, 503, 0} {
			m.RemoteResponse(code)
		}
	}, map[string]float64{
		"mcp_sse_remote_responses_total{status=2xx}": 2, "mcp_sse_remote_responses_total{status=3xx}": 1,
		"mcp_sse_remote_responses_total{status=4xx}": 1, "mcp_sse_remote_responses_total{status=5xx}": 1,
		"mcp_sse_remote_responses_total{status=none}": 1,
	}},
	{"Held", func(m *metrics.Metrics) { m.Held(5); m.Held(-2) }, map[string]float64{"mcp_sse_held_bytes{}": 3}},
}

// operation returns the moves of RequestDone after a second.
func operation(method, errorType string, seconds float64) map[string]float64 {
	labels := "{mcp_method_name=" + method + ",network_transport=tcp}"
	if errorType != "" {
		labels = "{error_type=" + errorType + ",mcp_method_name=" + method + ",network_transport=tcp}"
	}
	return map[string]float64{
		"mcp_sse_requests_in_flight{}":                       -1,
		"mcp_server_operation_duration_seconds" + labels:     1,
		"mcp_server_operation_duration_seconds_sum" + labels: seconds,
	}
}
