package metrics_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/metrics"
)

// readyExemplar returns the exemplar of mcp_sse_ready_seconds, where all
// observations are in one bucket.
func readyExemplar(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	gathered, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range gathered {
		if g.GetName() != "mcp_sse_ready_seconds" {
			continue
		}
		for _, b := range g.GetMetric()[0].GetHistogram().GetBucket() {
			for _, l := range b.GetExemplar().GetLabel() {
				return l.GetValue()
			}
		}
	}
	return ""
}

func TestExemplarsAreLimited(t *testing.T) {
	steps := []struct {
		after time.Duration
		id    string
		want  string
	}{
		{0, "first", "first"},
		{99 * time.Millisecond, "soon", "first"},
		{time.Millisecond, "", "first"},
		{0, strings.Repeat("x", 65), "first"},
		{0, "\xff", "first"},
		{0, "later", "later"},
		{0, "at once", "later"},
		{time.Hour, strings.Repeat("é", 32), strings.Repeat("é", 32)},
	}
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := metrics.New(reg)
		for i, s := range steps {
			time.Sleep(s.after) // on the clock of the bubble
			m.Ready(second, s.id)
			if got := readyExemplar(t, reg); got != s.want {
				t.Errorf("step %d: exemplar %q, want %q", i, got, s.want)
			}
		}
		if got := gatherSeries(t, reg)["mcp_sse_ready_seconds{}"]; got != float64(len(steps)) {
			t.Errorf("%v observations, want %d", got, len(steps))
		}
	})
}
