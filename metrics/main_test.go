package metrics_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newAll returns all series, of a process that is a replica and has a configuration.
func newAll(t *testing.T) (*prometheus.Registry, *metrics.Metrics) {
	t.Helper()
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	_, err := metrics.NewConfig(reg)
	ssetest.Must(t, err)
	_, err = metrics.NewCluster(reg)
	ssetest.Must(t, err)
	return reg, m
}

// family is the content of a scrape for one name.
type family struct {
	kind   string
	help   string
	labels []string                   // sorted
	values map[string]map[string]bool // by label
}

func (f family) add(label, value string) {
	if f.values[label] == nil {
		f.values[label] = make(map[string]bool)
	}
	f.values[label][value] = true
}

// gatherFamilies gathers all families of reg, by name.
func gatherFamilies(t *testing.T, reg *prometheus.Registry) map[string]family {
	t.Helper()
	gathered, err := reg.Gather()
	ssetest.Must(t, err)
	families := make(map[string]family, len(gathered))
	for _, g := range gathered {
		f := family{
			kind:   strings.ToLower(g.GetType().String()),
			help:   g.GetHelp(),
			values: make(map[string]map[string]bool),
		}
		for _, m := range g.GetMetric() {
			for _, l := range m.GetLabel() {
				f.add(l.GetName(), l.GetValue())
			}
		}
		f.labels = slices.Sorted(maps.Keys(f.values))
		families[g.GetName()] = f
	}
	return families
}

// wantMoved checks which series have changed since before, and by how much. A series that is
// new counts from 0.
func wantMoved(t testing.TB, reg *prometheus.Registry, before, want map[string]float64) {
	t.Helper()
	diff := make(map[string]float64)
	for name, v := range ssetest.Series(t, reg) {
		if d := v - before[name]; d != 0 {
			diff[name] = d
		}
	}
	ssetest.Want(t, "moved", diff, want)
}
