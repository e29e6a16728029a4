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

	"github.com/mcp-sse/mcp-sse/metrics"
)

// page is the content of docs/reference/metrics.md.
type page struct {
	families map[string]family
	queries  []string
}

var (
	seriesItem = regexp.MustCompile("^- `(mcp_[a-z_]+)`(?: \\((.*?)\\))?: (.*)$")
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

// readPage reads the lists of series, the lists of values and the queries of the page.
func readPage(t *testing.T) page {
	t.Helper()
	text, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	p := page{families: make(map[string]family)}
	var label string
	var names []string // the series whose values the list items below name
	inQuery := false
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\n  ", " ")) {
		line = strings.TrimSpace(line)
		item := seriesItem.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inQuery = line == "```promql"
		case inQuery:
			p.queries = append(p.queries, line)
		case item != nil:
			labels := backticked(item[2])
			slices.Sort(labels)
			p.families[item[1]] = family{kind: kindOf(item[1]), labels: labels, help: item[3], values: make(map[string]map[string]bool)}
		case strings.HasPrefix(line, "### `"):
			words := backticked(line)
			label, names = words[0], words[1:]
		case strings.HasPrefix(line, "- ") && names != nil:
			values, _, _ := strings.Cut(line, ": ")
			for _, name := range names {
				if p.families[name].values == nil {
					t.Fatalf("values of %s, which is in no list", name)
				}
				for _, value := range backticked(values) {
					p.families[name].add(label, value)
				}
			}
		}
	}
	return p
}

// touchAll makes the histograms of every value of their labels.
func touchAll(t *testing.T, reg *prometheus.Registry, m *metrics.Metrics) {
	t.Helper()
	m.BuildInfo("v1", "abc", "go1.26")
	families := gatherFamilies(t, reg)
	for reason := range families["mcp_sse_connections_closed_total"].values["reason"] {
		m.ConnectionLasted(reason, 0)
	}
	for result := range families["mcp_sse_handshakes_total"].values["result"] {
		m.HandshakeDone(result, "", "", 0)
	}
	for _, method := range append(metrics.Methods, "x/y") {
		m.RequestDone(method, "", 0)
	}
	for _, errorType := range append(metrics.ErrorTypes, "-1") {
		m.RequestDone("ping", errorType, 0)
	}
}

func TestDocs(t *testing.T) {
	reg := prometheus.NewRegistry()
	touchAll(t, reg, metrics.New(reg))
	if _, err := metrics.NewConfig(reg); err != nil {
		t.Fatal(err)
	}
	got, want := gatherFamilies(t, reg), readPage(t).families
	for _, name := range slices.Sorted(maps.Keys(got)) {
		g, w := got[name], want[name]
		delete(g.values, "network_transport") // always the same
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

// TestAlerts checks that the alerts use series and label values that exist, counters
// from the start: rate() does not see the event that makes a series. It does not parse
// PromQL: that needs Prometheus itself.
func TestAlerts(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	start := gatherFamilies(t, reg)
	touchAll(t, reg, m)
	all := gatherFamilies(t, reg)
	selector := regexp.MustCompile(`(mcp_[a-z_]+)(?:_bucket|_count)?(?:\{([^}]*)\}|\[)`)
	matcher := regexp.MustCompile(`(\w+)(?:=|!=|=~|!~)"([^"]*)"`)
	checked := 0
	for _, query := range readPage(t).queries {
		if strings.Count(query, "(") != strings.Count(query, ")") {
			t.Errorf("unbalanced: %s", query)
		}
		for _, s := range selector.FindAllStringSubmatch(query, -1) {
			name := strings.TrimSuffix(strings.TrimSuffix(s[1], "_bucket"), "_count")
			f, ok := start[name]
			if all[name].kind == "histogram" {
				f, ok = all[name], true
			}
			if !ok {
				t.Errorf("no series %s in: %s", name, query)
			}
			for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
				for v := range strings.SplitSeq(m[2], "|") {
					checked++
					if !f.values[m[1]][v] {
						t.Errorf("no %s=%q in: %s", m[1], v, query)
					}
				}
			}
		}
	}
	if checked < 14 {
		t.Errorf("found %d values in the alerts: correct this test's patterns", checked)
	}
}

// Each constant is a value that its series have from the start; that of an error is none
// that RequestDone replaces.
func TestConstantsAreInTheLists(t *testing.T) {
	text, err := os.ReadFile("reasons.go")
	if err != nil {
		t.Fatal(err)
	}
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
