package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of requests for connections that another replica holds.
const (
	ForwardOK          = "ok"
	ForwardGone        = "gone"
	ForwardBusy        = "busy"
	ForwardUnavailable = "unavailable"
	ForwardUnreachable = "unreachable"
	ForwardCut         = "cut"
	ForwardCanceled    = "canceled"
)

// Cluster holds the series of a process that is a replica. Make it with [NewCluster]. It is
// safe for concurrent use.
type Cluster struct {
	replicas, connected prometheus.Gauge
	forwarded           *prometheus.CounterVec
	began               prometheus.Histogram

	all *set
	reg *prometheus.Registry
}

// NewCluster makes the series and registers them with reg, unless that is nil. It fails if
// reg has them.
func NewCluster(reg *prometheus.Registry) (*Cluster, error) {
	var f factory
	c := &Cluster{
		reg:       reg,
		replicas:  f.gauge("mcp_cluster_replicas", "Replicas that have been heard lately, this one included."),
		connected: f.gauge("mcp_cluster_connected", "1 if messages to and from NATS get through, else 0."),
		forwarded: f.counters("mcp_cluster_forwarded_total", "Requests for connections of other replicas.", "result",
			ForwardOK, ForwardGone, ForwardBusy, ForwardUnavailable, ForwardUnreachable, ForwardCut, ForwardCanceled),
		began: f.histogram("mcp_cluster_forward_seconds", "Time until their responses began.", fineBuckets()),
	}
	c.all = &set{all: f.all}
	if reg == nil {
		return c, nil
	}
	return c, reg.Register(c.all)
}

// Unregister takes the series from the registry.
func (c *Cluster) Unregister() {
	if c.reg != nil {
		c.reg.Unregister(c.all)
	}
}

// Now sets how many replicas there are, and whether messages get through.
func (c *Cluster) Now(replicas int, connected bool) {
	c.replicas.Set(float64(replicas))
	c.connected.Set(0)
	if connected {
		c.connected.Set(1)
	}
}

// Forwarded counts a request by one of the Forward constants.
func (c *Cluster) Forwarded(result string) { c.forwarded.WithLabelValues(result).Inc() }

// ForwardBegan observes the time until the response to a request began.
func (c *Cluster) ForwardBegan(d time.Duration) { c.began.Observe(d.Seconds()) }
