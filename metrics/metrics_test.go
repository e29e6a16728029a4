package metrics_test

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestMethodsMoveTheirSeriesOnly(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	before := ssetest.Series(t, reg)
	m.HandshakeDone(metrics.HandshakeError, metrics.PhaseRequestProcessing, metrics.ReasonRejected, 2*time.Second)
	m.StateChanged("initializing", "ready")
	for _, code := range []int{200, 202, 307, 404, 503, 0} {
		m.RemoteResponse(code)
	}
	want := map[string]float64{
		`mcp_sse_handshakes_total{phase="request_processing",reason="rejected",result="error"}`: 1,
		`mcp_sse_handshake_duration_seconds{result="error"}`:                                    1, `mcp_sse_handshake_duration_seconds_sum{result="error"}`: 2,
		`mcp_sse_connection_state{state="initializing"}`: -1, `mcp_sse_connection_state{state="ready"}`: 1,
		`mcp_sse_remote_responses_total{status="2xx"}`: 2, `mcp_sse_remote_responses_total{status="3xx"}`: 1,
		`mcp_sse_remote_responses_total{status="4xx"}`: 1, `mcp_sse_remote_responses_total{status="5xx"}`: 1,
		`mcp_sse_remote_responses_total{status="none"}`: 1,
	}
	wantMoved(t, reg, before, want)
}

// Each transport counts by itself, and what has no transport once.
func TestOver(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := metrics.Named(reg, "", "sse", "streamable", "stdio")
	ssetest.Must(t, err)
	before := ssetest.Series(t, reg)
	m.Over("streamable").ConnectionOpened()
	m.Over("stdio").MessageIn(3)
	m.Over("sse").ConnectionOpened()
	m.Over("streamable").Dropped(metrics.DroppedShared)
	m.Dropped(metrics.DroppedShared)
	want := map[string]float64{
		`mcp_sse_connections{transport="streamable"}`: 1, `mcp_sse_connections_opened_total{transport="streamable"}`: 1,
		`mcp_sse_connections{transport="sse"}`: 1, `mcp_sse_connections_opened_total{transport="sse"}`: 1,
		`mcp_sse_messages_total{direction="in",transport="stdio"}`: 1, `mcp_sse_message_bytes_total{direction="in",transport="stdio"}`: 3,
		`mcp_sse_messages_dropped_total{reason="shared"}`: 2,
	}
	wantMoved(t, reg, before, want)
	plain := metrics.New(nil)
	ssetest.Want(t, "without transports", plain.Over("sse"), plain)
	if (*metrics.Metrics)(nil).Over("sse") != nil {
		t.Error("Over made metrics of nil")
	}
}

// Options without metrics have a nil *Metrics: every method does nothing then.
func TestNilCountsNothing(t *testing.T) {
	for _, m := range []*metrics.Metrics{nil, metrics.New(nil)} {
		v := reflect.ValueOf(m)
		for i := range v.NumMethod() {
			method := v.Method(i)
			var args []reflect.Value
			for in := range method.Type().Ins() {
				args = append(args, reflect.Zero(in))
			}
			method.Call(args)
		}
	}
}

// A client can send any method, and a server any error code.
func TestClientsMakeNoNewSeries(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	m.RequestDone("?", "?", 0, "")
	want := len(ssetest.Series(t, reg))
	for i := range 1000 {
		m.RequestDone("x"+strconv.Itoa(i)+"\xff\x00\n\"", strconv.Itoa(i+1), 0, "")
	}
	ssetest.Want(t, "series", len(ssetest.Series(t, reg)), want)
}

// Members of a view have a series for each state. Members that have left have none.
func TestMembersOfAView(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := metrics.Named(reg, "team")
	ssetest.Must(t, err)
	is := []metrics.Member{{"a", metrics.MemberLate}, {"b", metrics.MemberListed}}
	m.MeasureMembers(func() []metrics.Member { return is })
	series := func() string {
		var set []string
		for name, value := range ssetest.Series(t, reg) {
			if strings.HasPrefix(name, "mcp_sse_view_members") {
				set = append(set, fmt.Sprintf("%s %g", name, value))
			}
		}
		slices.Sort(set)
		return strings.Join(set, "\n")
	}
	ssetest.WantText(t, "series", series(), `{member="a",server="team",state="late"} 1`,
		`{member="a",server="team",state="listed"} 0`, `{member="b",server="team",state="listed"} 1`)
	is = is[1:]
	ssetest.Want(t, "those of a member that has left", strings.Contains(series(), `member="a"`), false)
	m.MeasureMembers(nil)
	ssetest.Want(t, "those of no view", series(), "")
}

func TestBuildInfoIsReplaced(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	m.BuildInfo("v1", "abc", "go1.26")
	m.BuildInfo("v\xff2", "", "go1.26")
	want := "# HELP mcp_sse_build_info Always 1; the labels say which build runs.\n# TYPE mcp_sse_build_info gauge\n" +
		"mcp_sse_build_info{goversion=\"go1.26\",revision=\"\",version=\"v\uFFFD2\"} 1\n"
	ssetest.Must(t, testutil.GatherAndCompare(reg, bytes.NewBufferString(want), "mcp_sse_build_info"))
}

func TestNewPanicsOnForeignSeries(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "mcp_sse_connections", Help: "Mine."}))
	defer func() {
		if recover() == nil {
			t.Error("New did not panic")
		}
		if n, err := testutil.GatherAndCount(reg); n != 1 || err != nil {
			t.Errorf("%d series, %v: New left some behind", n, err)
		}
	}()
	metrics.New(reg)
}

// Histograms have native buckets beside the classic ones, and all names are good ones.
func TestLint(t *testing.T) {
	reg := prometheus.NewRegistry()
	touchAll(t, reg, metrics.New(reg))
	problems, err := testutil.GatherAndLint(reg)
	ssetest.Must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	families, err := reg.Gather()
	ssetest.Must(t, err)
	checked := 0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				checked++
				// Schema 3, eight buckets for each power of two, is what a factor of 1.1 gives.
				if h.GetSchema() != 3 || len(h.GetBucket()) < 14 {
					t.Errorf("%s: schema %d, %d classic buckets", f.GetName(), h.GetSchema(), len(h.GetBucket()))
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no histogram was checked")
	}
}

// Each of several servers has all series, with its name.
func TestNamedSeries(t *testing.T) {
	reg := prometheus.NewRegistry()
	for _, name := range []string{"docs", "git"} {
		m, err := metrics.Named(reg, name)
		ssetest.Must(t, err)
		touchAll(t, reg, m)
	}
	for name, f := range gatherFamilies(t, reg) {
		if servers := f.values["server"]; !servers["docs"] || !servers["git"] || len(servers) != 2 {
			t.Errorf("%s: got the servers %v, want docs and git", name, servers)
		}
	}
	if _, err := metrics.Named(reg, ""); err == nil {
		t.Error("series without a name were taken beside those with one")
	}
	if m, err := metrics.Named(nil, "docs"); m == nil || err != nil {
		t.Errorf("without a registry: got %v, %v", m, err)
	}
}

// Gateways with one name count together, whichever transports each serves, and their series
// are there until the last of them has ended.
func TestNamedSeriesAreShared(t *testing.T) {
	reg := prometheus.NewRegistry()
	var all []*metrics.Metrics
	for _, transports := range [][]string{{"sse", "streamable"}, {"streamable"}, {"streamable", "stdio"}} {
		m, err := metrics.Named(reg, "docs", transports...)
		ssetest.Must(t, err)
		m.Over("streamable").ConnectionOpened()
		m.Dropped(metrics.DroppedShared)
		all = append(all, m)
	}
	got := ssetest.Series(t, reg)
	if opened, dropped := got[`mcp_sse_connections_opened_total{server="docs",transport="streamable"}`], got[`mcp_sse_messages_dropped_total{reason="shared",server="docs"}`]; opened != 3 || dropped != 3 {
		t.Errorf("counted %v and %v, want 3 and 3", opened, dropped)
	}
	for i, want := range []map[string]bool{{"streamable": true, "stdio": true}, {"streamable": true, "stdio": true}, nil} {
		all[i].Unregister()
		all[i].Unregister()
		if got := gatherFamilies(t, reg)["mcp_sse_connections"].values["transport"]; !maps.Equal(got, want) {
			t.Errorf("after %d have ended: the transports %v, want %v", i+1, got, want)
		}
	}
	if got := ssetest.Series(t, reg); len(got) > 0 {
		t.Errorf("series are left: %v", got)
	}
	if _, err := metrics.Named(reg, "docs", "sse"); err != nil {
		t.Errorf("again: %v", err)
	}
}

// Requests that reach no server are counted beside those that do.
func TestUnservedCountsUnderNoName(t *testing.T) {
	reg := prometheus.NewRegistry()
	_, err := metrics.Named(reg, "docs", "sse", "streamable", "stdio")
	ssetest.Must(t, err)
	u, err := metrics.Unserved(reg)
	ssetest.Must(t, err)
	again, err := metrics.Unserved(reg)
	ssetest.Must(t, err)
	before := ssetest.Series(t, reg)
	again.ConnectionRejected(metrics.RejectedNotFound)
	u.PostRejected(metrics.RejectedNotFound)
	u.PostRejected(metrics.RejectedNotFound)
	want := map[string]float64{
		`mcp_sse_connections_rejected_total{reason="not_found",server="",transport=""}`: 1, `mcp_sse_posts_rejected_total{reason="not_found",server="",transport=""}`: 2,
	}
	wantMoved(t, reg, before, want)
	if _, err := metrics.Unserved(prometheus.NewRegistry()); err != nil {
		t.Errorf("alone: %v", err)
	}
	plain := prometheus.NewRegistry()
	metrics.New(plain)
	if _, err := metrics.Unserved(plain); err == nil {
		t.Error("series with the label were taken beside those without")
	}
}

func TestTotals(t *testing.T) {
	m, err := metrics.Named(prometheus.NewRegistry(), "docs", "sse", "streamable")
	ssetest.Must(t, err)
	m.HandshakeDone(metrics.HandshakeOK, "", "", 0)
	m.HandshakeDone(metrics.HandshakeCanceled, "", "", 0)
	m.HandshakeDone(metrics.HandshakeError, metrics.PhaseRequestCreation, metrics.ReasonTimeout, 0)
	m.RequestDone("tools/call", "", 0, "")
	m.Over("streamable").RequestDone("tools/call", metrics.ErrorTool, 0, "")
	m.Over("streamable").RequestDone("ping", metrics.ErrorCanceled, 0, "")
	m.SessionRestarted()
	m.ClientLostToStart()
	m.Sessions(2)
	for _, reason := range []string{metrics.ChildOK, metrics.ChildClosed, metrics.ChildError, metrics.ChildSignal} {
		m.ChildStarted()
		m.ChildExited(reason)
	}
	m.ChildStarted()
	want := metrics.Totals{Restarts: 1, Crashes: 2, LostToStart: 1, Sessions: 2, Children: 1}
	ssetest.Want(t, "totals", m.Totals(), want)
	minutes := 0
	for _, minute := range m.Hour() {
		minutes += minute[metrics.Handshakes] + 10*minute[metrics.Requests] + 100*minute[metrics.Errors]
	}
	ssetest.Want(t, "1, 10 and 100 times handshakes, requests and errors", minutes, 1+30+100)
	var none *metrics.Metrics
	none.Totals() // does not panic
	none.Hour()
}

func TestHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(nil)
		for i := range 90 {
			for range i {
				m.RequestDone("ping", "", 0, "")
			}
			if i%7 != 0 { // nobody may ask for long
				ssetest.Want(t, "a minute while it lasts", m.Hour()[59][metrics.Requests], i)
			}
			time.Sleep(time.Minute)
		}
		for i, got := range m.Hour() { // the first of 90 are forgotten, and the current one is empty
			if want := (31 + i) % 90; got[metrics.Requests] != want {
				t.Errorf("minute %d: got %d, want %d", i, got[metrics.Requests], want)
			}
		}
		time.Sleep(58 * time.Minute)
		ssetest.Want(t, "58 minutes later", m.Hour(), (metrics.Hour{0: {metrics.Requests: 89}}))
		time.Sleep(24 * time.Hour)
		ssetest.Want(t, "a day later", m.Hour(), (metrics.Hour{}))
	})
}
