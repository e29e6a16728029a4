package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics holds the series of one gateway. Make it with [New]. All methods are
// safe for concurrent use, and do nothing on a nil *Metrics.
type Metrics struct {
	*clientSeries
	*serverSeries
	over map[string]*Metrics // by transport; nil: the series have no label transport

	to   prometheus.Registerer // nil: the series are not registered
	sets []*set                // registered, of all its series
}

// unseen replaces a nil *Metrics. Nobody reads its counts.
var unseen = sync.OnceValue(func() *Metrics { return New(nil) })

func (m *Metrics) live() *Metrics {
	if m == nil {
		return unseen()
	}
	return m
}

// New makes the series and registers them with reg. If reg is nil, the series count
// but are not registered. A second call with the same registry returns Metrics of the same
// series, so two gateways in one program count together. New panics if reg holds a
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
	m := &Metrics{}
	if reg != nil {
		m.to = reg
	}
	if reg != nil && server != "" {
		m.to = prometheus.WrapRegistererWith(prometheus.Labels{"server": server}, reg)
	}
	var f factory
	own, err := m.register(&set{serverSeries: newServerSeries(&f)}, &f)
	m.serverSeries = own.serverSeries
	if len(transports) > 0 {
		m.over = make(map[string]*Metrics)
	}
	for i := 0; err == nil && i < max(1, len(transports)); i++ {
		transport := ""
		if len(transports) > 0 {
			transport = transports[i]
		}
		own, err = m.registerTransport(transport)
		if i == 0 {
			m.clientSeries = own.clientSeries
		}
		if len(transports) > 0 {
			m.over[transport] = &Metrics{clientSeries: own.clientSeries, serverSeries: m.serverSeries}
		}
	}
	if err != nil {
		m.Unregister()
		return nil, err
	}
	return m, nil
}

// AddTransport makes the series of one more transport, for Over. It does nothing if they are there, or if m has no
// transports. No Over may run at the same time.
func (m *Metrics) AddTransport(transport string) error {
	if m == nil || m.over == nil || m.over[transport] != nil {
		return nil
	}
	own, err := m.registerTransport(transport)
	if err != nil {
		return err
	}
	m.over[transport] = &Metrics{clientSeries: own.clientSeries, serverSeries: m.serverSeries}
	return nil
}

// registerTransport registers the series of a transport; empty: those without that label.
func (m *Metrics) registerTransport(transport string) (*set, error) {
	var f factory
	if transport != "" {
		f.labels = prometheus.Labels{"transport": transport}
	}
	return m.register(&set{clientSeries: newClientSeries(&f)}, &f)
}

// Unserved returns Metrics for requests that reach none of several servers. It
// registers only the two series of rejections, with empty labels server and transport,
// beside those of Named. It fails if reg has the series without the label server.
func Unserved(reg *prometheus.Registry) (*Metrics, error) {
	f := factory{labels: prometheus.Labels{"transport": ""}}
	m := &Metrics{clientSeries: newClientSeries(&f), serverSeries: newServerSeries(&f)}
	m.to = prometheus.WrapRegistererWith(prometheus.Labels{"server": ""}, reg)
	f.all = []prometheus.Collector{m.rejected, m.postsRejected}
	own, err := m.register(&set{clientSeries: m.clientSeries}, &f)
	m.clientSeries = own.clientSeries
	return m, err
}

// Over returns the Metrics that count for one transport of those given to Named. All
// share the series that have no label transport. Without transports, it returns m.
func (m *Metrics) Over(transport string) *Metrics {
	if m == nil || m.over[transport] == nil {
		return m
	}
	return m.over[transport]
}

// registering is held while series are registered or unregistered.
var registering sync.Mutex

// register registers a set that f has made, for m, and returns it, or the set with the same
// series that is registered already.
func (m *Metrics) register(s *set, f *factory) (*set, error) {
	s.all = f.all
	if m.to == nil {
		return s, nil
	}
	registering.Lock()
	defer registering.Unlock()
	err := m.to.Register(s)
	if are, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if earlier, ok := are.ExistingCollector.(*set); ok {
			s, err = earlier, nil
		}
	}
	if err != nil {
		return s, fmt.Errorf("register: %w", err)
	}
	s.users++
	m.sets = append(m.sets, s)
	return s, nil
}

// Unregister takes the series of m from the registry, except those that other Metrics share.
// It is idempotent.
func (m *Metrics) Unregister() {
	if m == nil {
		return
	}
	registering.Lock()
	defer registering.Unlock()
	for _, s := range m.sets {
		s.users--
		if s.users == 0 {
			m.to.Unregister(s)
		}
	}
	m.sets = nil
}

// set is a part of the series of a Metrics, which the registry takes or refuses as a whole.
type set struct {
	*clientSeries
	*serverSeries
	all   []prometheus.Collector
	users int // Metrics that have it; registering guards it
}

var _ prometheus.Collector = (*set)(nil)

// Describe sends the descriptions of all series.
func (s *set) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range s.all {
		c.Describe(ch)
	}
}

// Collect sends all series.
func (s *set) Collect(ch chan<- prometheus.Metric) {
	if s.serverSeries != nil {
		s.measureNow()
	}
	for _, c := range s.all {
		c.Collect(ch)
	}
}

// BuildInfo records which build runs. It replaces the record of an earlier call.
func (m *Metrics) BuildInfo(version, revision, goVersion string) {
	m = m.live()
	m.buildInfo.Reset()
	valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") } // else Prometheus panics
	m.buildInfo.WithLabelValues(valid(version), valid(revision), valid(goVersion)).Set(1)
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
// OpenMetrics or as protobuf (with native histograms), as the scraper requests. reg
// must not be nil.
func Handler(reg *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true})
}
