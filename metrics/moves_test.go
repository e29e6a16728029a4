package metrics_test

import (
	"time"

	"github.com/mcp-sse/mcp-sse/metrics"
)

const second = time.Second

// moves lists the series that each method must move; it may move no others.
var moves = []struct {
	name string
	do   func(*metrics.Metrics)
	want map[string]float64
}{
	{"ConnectionOpened", func(m *metrics.Metrics) { m.ConnectionOpened() }, map[string]float64{
		"mcp_sse_connections_opened_total{}": 1, "mcp_sse_connections{}": 1,
	}},
	{"ConnectionClosed", func(m *metrics.Metrics) { m.ConnectionClosed(metrics.ClosedClient) }, map[string]float64{
		"mcp_sse_connections_closed_total{reason=client}": 1, "mcp_sse_connections{}": -1,
	}},
	{"ConnectionLasted as it should", func(m *metrics.Metrics) { m.ConnectionLasted(metrics.ClosedClient, 3*second) }, map[string]float64{
		"mcp_server_session_duration_seconds{network_transport=tcp}":     1,
		"mcp_server_session_duration_seconds_sum{network_transport=tcp}": 3,
	}},
	{"ConnectionLasted by an error", func(m *metrics.Metrics) { m.ConnectionLasted(metrics.ClosedSlow, 3*second) }, map[string]float64{
		"mcp_server_session_duration_seconds{error_type=slow,network_transport=tcp}":     1,
		"mcp_server_session_duration_seconds_sum{error_type=slow,network_transport=tcp}": 3,
	}},
	{"ConnectionRejected", func(m *metrics.Metrics) { m.ConnectionRejected(metrics.RejectedRate) }, map[string]float64{
		"mcp_sse_connections_rejected_total{reason=rate}": 1,
	}},
	{"PostRejected", func(m *metrics.Metrics) { m.PostRejected(metrics.PostTooLarge) }, map[string]float64{
		"mcp_sse_posts_rejected_total{reason=too_large}": 1,
	}},
	{"StateChanged of a new connection", func(m *metrics.Metrics) { m.StateChanged("", "initializing") }, map[string]float64{
		"mcp_sse_connection_state{state=initializing}": 1,
	}},
	{"StateChanged", func(m *metrics.Metrics) { m.StateChanged("initializing", "ready") }, map[string]float64{
		"mcp_sse_connection_state{state=initializing}": -1, "mcp_sse_connection_state{state=ready}": 1,
	}},
	{"StateChanged to closed", func(m *metrics.Metrics) { m.StateChanged("draining", "closed") }, map[string]float64{
		"mcp_sse_connection_state{state=draining}": -1,
	}},
	{"StateChanged to nothing", func(m *metrics.Metrics) { m.StateChanged("failed", "") }, map[string]float64{
		"mcp_sse_connection_state{state=failed}": -1,
	}},
	{"ResponseMatched", func(m *metrics.Metrics) { m.ResponseMatched(metrics.MatchedOrphan) }, map[string]float64{
		"mcp_sse_responses_matched_total{by=orphan}": 1,
	}},
	{"HandshakeDone ok", func(m *metrics.Metrics) { m.HandshakeDone(metrics.HandshakeOK, "", "", second) }, map[string]float64{
		"mcp_sse_handshakes_total{result=ok}":           1,
		"mcp_sse_handshake_duration_seconds{result=ok}": 1, "mcp_sse_handshake_duration_seconds_sum{result=ok}": 1,
	}},
	{"HandshakeDone error", func(m *metrics.Metrics) {
		m.HandshakeDone(metrics.HandshakeError, metrics.PhaseRequestProcessing, metrics.ReasonRejected, second)
	}, map[string]float64{
		"mcp_sse_handshakes_total{phase=request_processing,reason=rejected,result=error}": 1,
		"mcp_sse_handshake_duration_seconds{result=error}":                                1,
		"mcp_sse_handshake_duration_seconds_sum{result=error}":                            1,
	}},
	{"HandshakeDone canceled", func(m *metrics.Metrics) { m.HandshakeDone(metrics.HandshakeCanceled, "", "", second) }, map[string]float64{
		"mcp_sse_handshakes_total{result=canceled}":               1,
		"mcp_sse_handshake_duration_seconds{result=canceled}":     1,
		"mcp_sse_handshake_duration_seconds_sum{result=canceled}": 1,
	}},
	{"Ready", func(m *metrics.Metrics) { m.Ready(second) }, map[string]float64{
		"mcp_sse_ready_seconds{}": 1, "mcp_sse_ready_seconds_sum{}": 1,
	}},
	{"GateQueued", func(m *metrics.Metrics) { m.GateQueued() }, map[string]float64{"mcp_sse_gate_depth{}": 1}},
	{"GateReleased", func(m *metrics.Metrics) { m.GateReleased(second) }, map[string]float64{
		"mcp_sse_gate_depth{}": -1, "mcp_sse_gate_wait_seconds{}": 1, "mcp_sse_gate_wait_seconds_sum{}": 1,
	}},
	{"GateRejected full", func(m *metrics.Metrics) { m.GateRejected(metrics.GateFull, 0) }, map[string]float64{
		"mcp_sse_gate_rejected_total{reason=full}": 1,
	}},
	{"GateRejected timeout", func(m *metrics.Metrics) { m.GateRejected(metrics.GateTimeout, second) }, map[string]float64{
		"mcp_sse_gate_rejected_total{reason=timeout}": 1, "mcp_sse_gate_depth{}": -1,
		"mcp_sse_gate_wait_seconds{}": 1, "mcp_sse_gate_wait_seconds_sum{}": 1,
	}},
	{"Heartbeat", func(m *metrics.Metrics) { m.Heartbeat() }, map[string]float64{"mcp_sse_heartbeats_total{}": 1}},
	{"MessageIn", func(m *metrics.Metrics) { m.MessageIn(7) }, map[string]float64{
		"mcp_sse_messages_total{direction=in}": 1, "mcp_sse_message_bytes_total{direction=in}": 7,
	}},
	{"MessageOut", func(m *metrics.Metrics) { m.MessageOut(7) }, map[string]float64{
		"mcp_sse_messages_total{direction=out}": 1, "mcp_sse_message_bytes_total{direction=out}": 7,
	}},
	{"RequestStarted", func(m *metrics.Metrics) { m.RequestStarted() }, map[string]float64{"mcp_sse_requests_in_flight{}": 1}},
	{"RequestDone", func(m *metrics.Metrics) { m.RequestDone("tools/call", "", second) }, operation("tools/call", "", 1)},
	{"RequestDone with a code", func(m *metrics.Metrics) { m.RequestDone("tools/list", "-32601", second) },
		operation("tools/list", "-32601", 1)},
	{"RequestDone with an unknown method and code", func(m *metrics.Metrics) { m.RequestDone("x/y", "-32099", second) },
		operation("_other", "_other", 1)},
	{"Dropped", func(m *metrics.Metrics) { m.Dropped(metrics.DroppedUnknownResponse) }, map[string]float64{
		"mcp_sse_messages_dropped_total{reason=unknown_response}": 1,
	}},
	{"ChildStarted", func(m *metrics.Metrics) { m.ChildStarted() }, map[string]float64{
		"mcp_sse_child_starts_total{result=ok}": 1, "mcp_sse_children{}": 1,
	}},
	{"ChildStartFailed", func(m *metrics.Metrics) { m.ChildStartFailed() }, map[string]float64{
		"mcp_sse_child_starts_total{result=error}": 1,
	}},
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
	{"SessionRestarted", func(m *metrics.Metrics) { m.SessionRestarted() }, map[string]float64{
		"mcp_sse_session_restarts_total{}": 1,
	}},
	{"PoolIdle", func(m *metrics.Metrics) { m.PoolIdle(2) }, map[string]float64{"mcp_sse_pool_idle{}": 2}},
	{"PoolTake hit", func(m *metrics.Metrics) { m.PoolTake(true) }, map[string]float64{"mcp_sse_pool_takes_total{result=hit}": 1}},
	{"PoolTake miss", func(m *metrics.Metrics) { m.PoolTake(false) }, map[string]float64{"mcp_sse_pool_takes_total{result=miss}": 1}},
	{"SessionStarting", func(m *metrics.Metrics) { m.SessionStarting() }, map[string]float64{"mcp_sse_sessions{}": 1}},
	{"SessionEnded", func(m *metrics.Metrics) { m.SessionEnded() }, map[string]float64{"mcp_sse_sessions{}": -1}},
	{"StartQueued", func(m *metrics.Metrics) { m.StartQueued() }, map[string]float64{"mcp_sse_starts_waiting{}": 1}},
	{"StartUnqueued", func(m *metrics.Metrics) { m.StartUnqueued() }, map[string]float64{"mcp_sse_starts_waiting{}": -1}},
	{"RequestRepeated", func(m *metrics.Metrics) { m.RequestRepeated() }, map[string]float64{"mcp_sse_requests_repeated_total{}": 1}},
	{"Held", func(m *metrics.Metrics) { m.Held(5); m.Held(-2) }, map[string]float64{"mcp_sse_held_bytes{}": 3}},
	{"OverBudget", func(m *metrics.Metrics) { m.OverBudget(metrics.HeldGate) }, map[string]float64{"mcp_sse_over_budget_total{holder=gate}": 1}},
	{"BuildInfo", func(m *metrics.Metrics) { m.BuildInfo("v1", "abc", "go1.26") }, map[string]float64{
		"mcp_sse_build_info{goversion=go1.26,revision=abc,version=v1}": 1,
	}},
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
