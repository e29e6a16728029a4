package metrics_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
)

var (
	seriesItem = regexp.MustCompile("^- `(mcp_[a-z_]+)`(?: \\((.*?)\\))?: (.*)$")
	selector   = regexp.MustCompile(`(mcp_[a-z_]+)(?:\{([^}]*)\}|\[)`)
	matcher    = regexp.MustCompile(`(\w+)(?:=|!=|=~|!~)"([^"]*)"`)
	quoted     = regexp.MustCompile("`([^`]*)`")
)

func backticked(s string) (words []string) {
	for _, m := range quoted.FindAllStringSubmatch(s, -1) {
		words = append(words, strings.Trim(m[1], `"`))
	}
	return words
}

// kindOf returns the type of a series by its name.
func kindOf(name string) string {
	switch {
	case strings.HasSuffix(name, "_total"):
		return "counter"
	case strings.HasSuffix(name, "_seconds") && !strings.HasSuffix(name, "_timestamp_seconds"):
		return "histogram"
	}
	return "gauge"
}

// readPage returns the lists of series and of values in docs/reference/metrics.md.
func readPage(t *testing.T) map[string]family {
	t.Helper()
	text, err := os.ReadFile("../docs/reference/metrics.md")
	ssetest.Must(t, err)
	families := make(map[string]family)
	var label string
	var names []string // the series whose values the list items below name
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\n  ", " ")) {
		line = strings.TrimSpace(line)
		item := seriesItem.FindStringSubmatch(line)
		switch {
		case item != nil:
			labels := backticked(item[2])
			slices.Sort(labels)
			families[item[1]] = family{kind: kindOf(item[1]), labels: labels, help: item[3], values: make(map[string]map[string]bool)}
		case strings.HasPrefix(line, "### `"):
			words := backticked(line)
			label, names = words[0], words[1:]
		case strings.HasPrefix(line, "- ") && names != nil:
			values, _, _ := strings.Cut(line, ": ")
			for _, name := range names {
				if families[name].values == nil {
					t.Fatalf("values of %s, which is in no list", name)
				}
				for _, value := range backticked(values) {
					families[name].add(label, value)
				}
			}
		}
	}
	return families
}

// touchAll makes the histograms of every value of their labels.
func touchAll(t *testing.T, reg *prometheus.Registry, m *metrics.Metrics) {
	t.Helper()
	m.BuildInfo("v1", "abc", "go1.26")
	m.MeasureMembers(func() []metrics.Member { return []metrics.Member{{Name: "a", State: metrics.MemberLate}} })
	families := gatherFamilies(t, reg)
	for reason := range families["mcp_sse_connections_closed_total"].values["reason"] {
		m.ConnectionLasted(reason, 0)
	}
	for result := range families["mcp_sse_handshakes_total"].values["result"] {
		m.HandshakeDone(result, "", "", 0)
	}
	for _, method := range append(metrics.Methods, "x/y") {
		m.RequestDone(method, "", 0, "")
	}
	for _, errorType := range append(metrics.ErrorTypes, "-1") {
		m.RequestDone("ping", errorType, 0, "")
	}
}

func TestDocs(t *testing.T) {
	reg, m := newAll(t)
	touchAll(t, reg, m)
	got, want := gatherFamilies(t, reg), readPage(t)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		g, w := got[name], want[name]
		delete(g.values, "network_transport") // always the same
		delete(g.values, "member")            // any name of a server
		if name == "mcp_sse_build_info" {
			clear(g.values)
		}
		if g.kind != w.kind || g.help != w.help || !slices.Equal(g.labels, w.labels) {
			t.Errorf("%s: is\n%s, %v, %q\ndocumented as\n%s, %v, %q", name, g.kind, g.labels, g.help, w.kind, w.labels, w.help)
		}
		if g, w := fmt.Sprint(g.values), fmt.Sprint(w.values); g != w {
			t.Errorf("%s: has the values\n%s\ndocumented as\n%s", name, g, w)
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is documented and does not exist", name)
		}
	}
}

// TestQueries checks that the rules and the dashboard use series and label values that
// exist, counters from the start: rate() does not see the event that makes a series. make
// check-deploy has Prometheus itself run them.
func TestQueries(t *testing.T) {
	reg, m := newAll(t)
	start := gatherFamilies(t, reg)
	touchAll(t, reg, m)
	all := gatherFamilies(t, reg)
	for _, name := range []string{"prometheus/rules.yml", "grafana/dashboard.json"} {
		text, err := os.ReadFile("../deploy/" + name)
		ssetest.Must(t, err)
		series, values := 0, 0
		for _, s := range selector.FindAllStringSubmatch(strings.ReplaceAll(string(text), `\"`, `"`), -1) {
			series++
			name := strings.TrimSuffix(strings.TrimSuffix(s[1], "_bucket"), "_count")
			f, ok := start[name]
			if !ok {
				f, ok = all[name]
			}
			if !ok || f.kind == "counter" && start[name].kind == "" {
				t.Errorf("no series %s from the start, for: %s", name, s[0])
			}
			for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
				if strings.HasPrefix(m[2], "$") || m[2] == "" {
					continue
				}
				for v := range strings.SplitSeq(strings.Trim(m[2], "|"), "|") {
					values++
					if !f.values[m[1]][v] {
						t.Errorf("no %s=%q for: %s", m[1], v, s[0])
					}
				}
			}
		}
		if series < 15 || values < 4 {
			t.Errorf("found %d series and %d values in %s: correct this test's patterns", series, values, name)
		}
	}
}

// Each constant is a value that its series have from the start; that of an error is none
// that RequestDone replaces.
func TestConstantsAreInTheLists(t *testing.T) {
	text, err := os.ReadFile("reasons.go")
	ssetest.Must(t, err)
	reg := prometheus.NewRegistry()
	touchAll(t, reg, metrics.New(reg))
	families := gatherFamilies(t, reg)
	series := map[string][]string{
		"Rejected": {"mcp_sse_connections_rejected_total", "mcp_sse_posts_rejected_total"}, "Post": {"mcp_sse_posts_rejected_total"},
		"Handshake": {"mcp_sse_handshakes_total"}, "Phase": {"mcp_sse_handshakes_total"}, "Reason": {"mcp_sse_handshakes_total"},
		"Gate": {"mcp_sse_gate_rejected_total"}, "Error": {"mcp_server_operation_duration_seconds"},
		"Dropped": {"mcp_sse_messages_dropped_total"}, "Matched": {"mcp_sse_responses_matched_total"},
		"Held": {"mcp_sse_over_budget_total"}, "Closed": {"mcp_sse_connections_closed_total"}, "Child": {"mcp_sse_child_exits_total"},
	}
	for _, c := range regexp.MustCompile(`(?m)^\t(([A-Z][a-z]+)\w+) += "(\w+)"`).FindAllStringSubmatch(string(text), -1) {
		found := false
		for _, name := range series[c[2]] {
			for _, values := range families[name].values {
				found = found || values[c[3]]
			}
		}
		if !found {
			t.Errorf("%s is in no list", c[1])
		}
	}
}
