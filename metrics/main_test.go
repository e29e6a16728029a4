package metrics_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newAll returns all series, of a process that is a replica and has a configuration.
func newAll(t *testing.T) (*prometheus.Registry, *metrics.Metrics) {
	t.Helper()
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	_, err := metrics.NewConfig(reg)
	must(t, err)
	_, err = metrics.NewCluster(reg)
	must(t, err)
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
	must(t, err)
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

// gatherSeries gathers reg into one number for each series: of a histogram the
// count, and the sum under name_sum.
func gatherSeries(t testing.TB, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	gathered, err := reg.Gather()
	must(t, err)
	series := make(map[string]float64)
	for _, g := range gathered {
		for _, m := range g.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetValue() != "" {
					labels = append(labels, fmt.Sprintf("%s=%s", l.GetName(), l.GetValue()))
				}
			}
			key := "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.GetHistogram() != nil:
				series[g.GetName()+"_sum"+key] = m.GetHistogram().GetSampleSum()
				series[g.GetName()+key] = float64(m.GetHistogram().GetSampleCount())
			case m.GetGauge() != nil:
				series[g.GetName()+key] = m.GetGauge().GetValue()
			default:
				series[g.GetName()+key] = m.GetCounter().GetValue()
			}
		}
	}
	return series
}

// moved returns the series that changed, and by how much. A series that is new
// counts from 0.
func moved(before, after map[string]float64) map[string]float64 {
	diff := make(map[string]float64)
	for name, v := range after {
		if d := v - before[name]; d != 0 {
			diff[name] = d
		}
	}
	return diff
}
