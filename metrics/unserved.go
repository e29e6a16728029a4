package metrics

import "github.com/prometheus/client_golang/prometheus"

// refusalSeries are the series of refused requests.
type refusalSeries struct {
	rejected     closedSet[prometheus.Counter]
	postRejected closedSet[prometheus.Counter]
}

func newRefusalSeries(b *builder) refusalSeries {
	return refusalSeries{
		rejected: b.counters("mcp_sse_connections_rejected_total", "GETs that got no stream, by reason.",
			"reason", rejectedReasons()),
		postRejected: b.counters("mcp_sse_posts_rejected_total", "POSTs that got no 202, by reason.",
			"reason", postReasons()),
	}
}

// Unserved counts the requests that reach none of several servers, in the series of
// refusals with empty labels server and transport. It is safe for concurrent use.
type Unserved struct{ refusalSeries }

// NewUnserved makes the series and registers them with reg, beside those of [Named].
// A second call with the same registry returns the Unserved of the first. It fails if
// the registry has the series without the label server.
func NewUnserved(reg *prometheus.Registry) (*Unserved, error) {
	b := builder{labels: prometheus.Labels{transportLabel: ""}}
	u := &Unserved{newRefusalSeries(&b)}
	return register(prometheus.WrapRegistererWith(prometheus.Labels{serverLabel: ""}, reg), u, b.all)
}

// ConnectionRejected counts like Metrics.ConnectionRejected.
func (u *Unserved) ConnectionRejected(reason string) { u.rejected.of(reason).Inc() }

// PostRejected counts like Metrics.PostRejected.
func (u *Unserved) PostRejected(reason string) { u.postRejected.of(reason).Inc() }
