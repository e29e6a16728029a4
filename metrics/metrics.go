package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics holds the series of one gateway. Make it with [New]. All methods are
// safe for concurrent use, and do nothing on a nil *Metrics.
type Metrics struct {
	*transportSeries
	others     map[string]*Metrics // by transport; nil: the series have no label transport
	handshakes handshakeSeries
	gate       gateSeries
	dropped    closedSet[lazyCounter]
	children   childSeries
	multiplex  multiplexSeries
	pool       poolSeries
	remote     remoteSeries
	budget     *budgetSeries
	buildInfo  *prometheus.GaugeVec
}

// transportSeries are the series that each transport has by itself.
type transportSeries struct {
	connections connectionSeries
	messages    messageSeries
	requests    requestSeries
}

func newTransportSeries(b *builder) *transportSeries {
	return &transportSeries{newConnectionSeries(b), newMessageSeries(b), newRequestSeries(b)}
}

// Over returns the Metrics that count for one transport of those given to Named. All
// share the series that have no label transport. Without transports, it returns m.
func (m *Metrics) Over(transport string) *Metrics {
	if m == nil || m.others[transport] == nil {
		return m
	}
	return m.others[transport]
}

// New makes the series and registers them with reg. If reg is nil, the series count
// but are not registered. A second call with the same registry returns the Metrics of
// the first, so two gateways in one program count together. New panics if reg holds a
// foreign series with one of these names.
func New(reg *prometheus.Registry) *Metrics {
	m, err := Named(reg, "")
	if err != nil {
		panic("metrics: " + err.Error())
	}
	return m
}

// Named is like New, for one of several servers: each series has the label server
// with that name, and gateways with the same name count together. An empty name means
// no label. Named fails where New panics, and also if reg holds the series without
// the label and this call needs it, or the reverse.
//
// With transports, the series of connections, their messages and requests have the label
// transport, and Over gives those of each; the returned Metrics count for the first.
func Named(reg *prometheus.Registry, server string, transports ...string) (*Metrics, error) {
	m, all := build(transports)
	if reg == nil {
		return m, nil
	}
	var to prometheus.Registerer = reg
	if server != "" {
		to = prometheus.WrapRegistererWith(prometheus.Labels{serverLabel: server}, reg)
	}
	return register(to, m, all)
}

// register registers the series of owner and returns owner. If an earlier call
// registered the same series, it returns the owner of that call.
func register[T any](to prometheus.Registerer, owner *T, all []prometheus.Collector) (*T, error) {
	err := to.Register(&collector[T]{owner: owner, all: all})
	if err == nil {
		return owner, nil
	}
	if are, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if earlier, ok := are.ExistingCollector.(*collector[T]); ok {
			return earlier.owner, nil
		}
	}
	return nil, fmt.Errorf("register: %w", err)
}

// build makes all series.
func build(transports []string) (*Metrics, []prometheus.Collector) {
	var b builder
	m := &Metrics{
		handshakes: newHandshakeSeries(&b),
		gate:       newGateSeries(&b),
		dropped: b.lazyCounters("mcp_sse_messages_dropped_total", "Messages that were thrown away, by reason.",
			"reason", droppedReasons()),
		children:  newChildSeries(&b),
		multiplex: newMultiplexSeries(&b),
		pool:      newPoolSeries(&b),
		remote:    newRemoteSeries(&b),
		budget:    newBudgetSeries(&b),
		buildInfo: b.gaugeVec("mcp_sse_build_info", "Always 1; the labels say which build runs.",
			"version", "revision", "goversion"),
	}
	if len(transports) == 0 {
		m.transportSeries = newTransportSeries(&b)
		return m, b.all
	}
	m.others = make(map[string]*Metrics)
	for _, transport := range transports {
		b.labels = prometheus.Labels{transportLabel: transport}
		one := *m
		one.transportSeries = newTransportSeries(&b)
		m.others[transport] = &one
	}
	m.transportSeries = m.others[transports[0]].transportSeries
	return m, b.all
}

// BuildInfo records which build runs. It replaces the record of an earlier call.
func (m *Metrics) BuildInfo(version, revision, goVersion string) {
	if m == nil {
		return
	}
	m.buildInfo.Reset()
	m.buildInfo.WithLabelValues(labelText(version), labelText(revision), labelText(goVersion)).Set(1)
}

// labelText makes s valid for a label: Prometheus panics on invalid UTF-8.
func labelText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// collector collects all series of one owner, so that the registry takes all or none.
type collector[T any] struct {
	owner *T
	all   []prometheus.Collector
}

var _ prometheus.Collector = (*collector[Metrics])(nil)

// Describe sends the descriptions of all series.
func (c *collector[T]) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range c.all {
		s.Describe(ch)
	}
}

// Collect sends all series.
func (c *collector[T]) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.all {
		s.Collect(ch)
	}
}

// NewRegistry returns a registry with the metrics of the Go runtime and of the
// process.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return reg
}

// Handler returns a handler that serves the series of reg to Prometheus: as text, as
// OpenMetrics (with exemplars) or as protobuf (with native histograms), as the
// scraper requests. reg must not be nil.
func Handler(reg *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// add adds n. A negative n would be a caller's mistake, and counts as 0, because a
// panic must not stop a message.
func add(c prometheus.Counter, n int) { c.Add(float64(max(n, 0))) }
