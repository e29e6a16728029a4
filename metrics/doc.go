// Package metrics names every Prometheus series of the gateway, once.
//
// [New] makes the series and registers them. Each method of [Metrics] records one
// event. No other package builds a collector.
//
// Two histograms have the names of the OpenTelemetry conventions for MCP
// (mcp.server.operation.duration and mcp.server.session.duration), so that dashboards
// for other MCP servers work here. The others begin with mcp_sse_, mcp_config_ or
// mcp_cluster_.
//
// Labels are bounded: ids, addresses, tool names and URIs are never labels, and a
// method or an error code outside the lists of this package counts as "_other". Every
// counter and gauge exists from the start with the value 0, because rate() does not
// see the event that makes a series. A histogram with labels exists from its first
// observation.
//
// docs/reference/metrics.md lists all series for operators; a test compares it with
// the code.
//
// Version 1 makes no promise about this package: it may change at any time.
package metrics
