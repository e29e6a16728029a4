// Package metrics names every Prometheus series of the gateway, once.
//
// [New] makes the series and registers them; the methods of [Metrics] say what
// happened, in the words of the gateway, and move the series. No other package
// builds a collector. Every method is safe for concurrent use, works on a nil
// *Metrics (and does nothing), and is cheap enough for the path of a message:
// the children of all vectors are looked up when New runs, not when a message
// passes.
//
// # Names
//
// Two histograms have the names of the OpenTelemetry conventions for MCP
// (mcp.server.operation.duration and mcp.server.session.duration, state of
// August 2026), so that dashboards for other MCP servers work here; their
// missing values are "_other". All else is about the life of HTTP+SSE
// connections and is called mcp_sse_…, in base units, counters with _total.
//
// # Labels
//
// A label has a closed list of values, and each list is in this package. A
// value that is not in its list is counted as "other" (in the OpenTelemetry
// histograms "_other"), so that nothing a client sends can make a new series.
// Ids, addresses, tool names and URIs are never labels. What concerns one
// connection is found by its exemplar: where OpenMetrics is scraped, the
// histograms carry the connection_id of a recent observation.
//
// Series whose labels are known beforehand exist from the start with the value
// 0, so that rate() sees the first event. The exception is the product of
// methods and errors of mcp_server_operation_duration_seconds: an error there
// has a series from its first occurrence on.
//
// docs/reference/metrics.md lists all of it for operators; a test compares.
package metrics
