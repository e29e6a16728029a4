// Package metrics names every Prometheus series of the gateway, once.
//
// [New] makes the series and registers them. Each method of [Metrics] records one
// event of the gateway. No other package builds a collector. The methods are safe
// for concurrent use, do nothing on a nil *Metrics, and are cheap enough for each
// message: New or the first use looks up the child of a vector, not each call.
//
// # Names
//
// Two histograms have the names of the OpenTelemetry conventions for MCP
// (mcp.server.operation.duration and mcp.server.session.duration, state of
// August 2026), so that dashboards for other MCP servers work here; their
// missing values are "_other". All other series have the prefix mcp_sse_ and base
// units; counters end in _total.
//
// # Labels
//
// Each label has a closed list of values in this package. A value outside its list
// counts as "other" (in the OpenTelemetry histograms "_other"), so a client cannot
// make a new series. Ids, addresses, tool names and URIs are never labels. Exemplars
// lead to single connections: in OpenMetrics, the histograms carry the connection_id
// of a recent observation.
//
// A series exists from the start with the value 0 if it has no label, or if an
// alert of the docs needs the zero: rate() does not see the event that makes a
// series. The first event makes each of the others (lazyCounter, histogramVec):
// there are hundreds, a histogram alone has twenty, and most never occur.
//
// docs/reference/metrics.md lists all series for operators; a test compares it with
// the code.
package metrics
