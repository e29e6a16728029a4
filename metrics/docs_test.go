package metrics_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/metrics"
)

const docsFile = "../docs/reference/metrics.md"

// docs is the content of the reference page.
type docs struct {
	families map[string]family
	queries  []string
}

var (
	seriesRow     = regexp.MustCompile("^\\| `(mcp_[a-z_]+)` \\| (\\w+) \\|([^|]*)\\| ([^|]+) \\|$")
	valuesHeading = regexp.MustCompile("^### (`.*`) of (`.*`)$")
	valueRow      = regexp.MustCompile("^\\| `([^`]*)` \\| [^|]*\\|$")
	quoted        = regexp.MustCompile("`([^`]*)`")
)

func backticked(s string) []string {
	var words []string
	for _, m := range quoted.FindAllStringSubmatch(s, -1) {
		words = append(words, m[1])
	}
	return words
}

// parseDocs reads the tables and the queries of the page.
func parseDocs(t *testing.T) docs {
	t.Helper()
	page, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	d := docs{families: make(map[string]family)}
	var label string
	var names []string // the series whose label the rows below list
	inQuery := false
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "```") {
			inQuery = line == "```promql"
		} else if inQuery {
			d.queries = append(d.queries, line)
		} else if m := seriesRow.FindStringSubmatch(line); m != nil {
			labels := backticked(m[3])
			slices.Sort(labels)
			d.families[m[1]] = family{kind: m[2], labels: labels, help: m[4], values: make(map[string]map[string]bool)}
		} else if m := valuesHeading.FindStringSubmatch(line); m != nil {
			label, names = backticked(m[1])[0], backticked(m[2])
		} else if strings.HasPrefix(line, "## ") {
			names = nil
		} else if m := valueRow.FindStringSubmatch(line); m != nil {
			for _, name := range names {
				d.addValue(t, name, label, m[1])
			}
		}
	}
	return d
}

func (d docs) addValue(t *testing.T, name, label, value string) {
	t.Helper()
	f, ok := d.families[name]
	if !ok {
		t.Fatalf("values of %s of %s, which is not in the table of series", label, name)
	}
	if value == `""` {
		value = ""
	}
	if f.values[label] == nil {
		f.values[label] = make(map[string]bool)
	}
	f.values[label][value] = true
}

// touchAll moves every series that can exist.
func touchAll(m *metrics.Metrics) {
	for _, tt := range moves {
		tt.do(m)
	}
	metrics.MoveAll(m)
}

func TestDocs(t *testing.T) {
	reg := prometheus.NewRegistry()
	want := parseDocs(t)
	touchAll(metrics.New(reg))
	tcp, err := metrics.NewTCP(reg)
	if err != nil {
		t.Fatal(err)
	}
	tcp.Refused("no such reason")
	got := gatherFamilies(t, reg)
	for name, g := range got {
		w, ok := want.families[name]
		if !ok {
			t.Errorf("%s is not documented", name)
			continue
		}
		if g.kind != w.kind || g.help != w.help || !slices.Equal(g.labels, w.labels) {
			t.Errorf("%s: is\n%s, %v, %q\ndocumented as\n%s, %v, %q", name, g.kind, g.labels, g.help, w.kind, w.labels, w.help)
		}
		if name == "mcp_sse_build_info" {
			continue // its labels depend on the build
		}
		for _, label := range g.labels {
			compareValues(t, name, label, g.values[label], w.values[label])
		}
	}
	for name := range want.families {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is documented and does not exist", name)
		}
	}
}

func compareValues(t *testing.T, name, label string, got, want map[string]bool) {
	t.Helper()
	for v := range got {
		if !want[v] {
			t.Errorf("%s{%s=%q} is not documented", name, label, v)
		}
	}
	for v := range want {
		if !got[v] {
			t.Errorf("%s{%s=%q} is documented and does not exist", name, label, v)
		}
	}
}

// TestDocsQueries checks that the alerts use series and label values that exist. It
// does not parse PromQL: that needs Prometheus itself.
func TestDocsQueries(t *testing.T) {
	d := parseDocs(t)
	if len(d.queries) < 10 {
		t.Fatalf("%d queries", len(d.queries))
	}
	selector := regexp.MustCompile(`(mcp_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher := regexp.MustCompile(`(\w+)(?:=|!=|=~|!~)("[^"]*")`)
	for _, query := range d.queries {
		if strings.Count(query, "(") != strings.Count(query, ")") {
			t.Errorf("unbalanced: %s", query)
		}
		for _, s := range selector.FindAllStringSubmatch(query, -1) {
			f, ok := find(d, s[1])
			if !ok && s[1] != "mcp_method_name" {
				t.Errorf("no series %s in: %s", s[1], query)
			}
			for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
				values, err := strconv.Unquote(m[2])
				if err != nil {
					t.Fatal(err)
				}
				for v := range strings.SplitSeq(values, "|") {
					if !f.values[m[1]][v] {
						t.Errorf("no %s=%q in: %s", m[1], v, query)
					}
				}
			}
		}
	}
}

// TestAlertsHaveTheirZero checks that the counters of the alerts exist before the
// first event: rate() and increase() do not see the event that makes a series.
// Histograms are too many for that.
func TestAlertsHaveTheirZero(t *testing.T) {
	d := parseDocs(t)
	reg := prometheus.NewRegistry()
	metrics.New(reg)
	start := gatherFamilies(t, reg)
	selector := regexp.MustCompile(`(mcp_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher := regexp.MustCompile(`(\w+)(=|!=|=~|!~)"([^"]*)"`)
	checked := 0
	for _, query := range d.queries {
		for _, s := range selector.FindAllStringSubmatch(query, -1) {
			if d.families[s[1]].kind != "counter" {
				continue
			}
			checked++
			if _, ok := start[s[1]]; !ok {
				t.Errorf("%s is not there from the start: %s", s[1], query)
			}
			for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
				named := strings.Split(m[3], "|")
				for value := range d.families[s[1]].values[m[1]] {
					if slices.Contains(named, value) != strings.HasPrefix(m[2], "!") && !start[s[1]].values[m[1]][value] {
						t.Errorf("%s{%s=%q} is not there from the start: %s", s[1], m[1], value, query)
					}
				}
			}
		}
	}
	if checked < 8 {
		t.Errorf("found %d counters in the alerts: correct this test's pattern", checked)
	}
}

// find returns the family of a series; those of a histogram have suffixes.
func find(d docs, name string) (family, bool) {
	if f, ok := d.families[name]; ok {
		return f, true
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if f, ok := d.families[strings.TrimSuffix(name, suffix)]; ok && f.kind == "histogram" {
			return f, true
		}
	}
	return family{}, false
}
