// Package metrics names every Prometheus series of the gateway, once.
//
// [New] makes the series and registers them; the methods of [Metrics] say what
// happened, in the words of the gateway, and move the series. No other package
// builds a collector. Every method is safe for concurrent use, works on a nil
// *Metrics (and does nothing), and is cheap enough for the path of a message:
// the child of a vector is looked up once, when New runs or when it is first
// needed, not when a message passes.
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
// A series exists from the start with the value 0 if it has no label, or if an
// alert of the docs needs the zero: rate() does not see the event that makes a
// series. All others are made when they first move (lazyCounter, histogramVec):
// there are hundreds, a histogram alone has twenty, and most never occur.
//
// docs/reference/metrics.md lists all of it for operators; a test compares.
package metrics
