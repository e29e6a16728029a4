package metrics_test

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/mcp-sse/mcp-sse/metrics"
)

// scrape asks the handler for a content type and fails unless it gets it.
func scrape(t *testing.T, h http.Handler, accept, wantType string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	req.Header.Set("Accept", accept)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	got, _, err := mime.ParseMediaType(rec.Header().Get("Content-Type"))
	if err != nil || got != wantType || rec.Code != http.StatusOK {
		t.Fatalf("status %d, type %q (%v), want 200, %q", rec.Code, got, err, wantType)
	}
	return rec
}

func TestOpenMetricsCarriesExemplars(t *testing.T) {
	reg := metrics.NewRegistry()
	m := metrics.New(reg)
	m.ConnectionLasted(metrics.ClosedClient, time.Second, time.Second, "c0ffee01")
	m.HandshakeDone(metrics.HandshakeOK, "", "", time.Second, "c0ffee02")
	m.Ready(time.Second, "c0ffee03")
	m.RequestDone("tools/call", "", time.Second, "c0ffee04")

	body := scrape(t, metrics.Handler(reg), "application/openmetrics-text; version=1.0.0", "application/openmetrics-text").Body.String()
	for name, id := range map[string]string{
		"mcp_server_session_duration_seconds":   "c0ffee01",
		"mcp_sse_initialized_seconds":           "c0ffee01",
		"mcp_sse_handshake_duration_seconds":    "c0ffee02",
		"mcp_sse_ready_seconds":                 "c0ffee03",
		"mcp_server_operation_duration_seconds": "c0ffee04",
	} {
		if !slices.ContainsFunc(strings.Split(body, "\n"), func(line string) bool {
			return strings.HasPrefix(line, name+"_bucket{") && strings.Contains(line, `# {connection_id="`+id+`"} 1.0`)
		}) {
			t.Errorf("no bucket of %s has the exemplar %s", name, id)
		}
	}
	text := scrape(t, metrics.Handler(reg), "text/plain", "text/plain").Body.String()
	if strings.Contains(text, "c0ffee") {
		t.Error("an id is in the classic text format")
	}
}

func TestProtobufCarriesNativeHistograms(t *testing.T) {
	reg := metrics.NewRegistry()
	m := metrics.New(reg)
	for _, tt := range moves {
		tt.do(m)
	}
	const accept = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
	rec := scrape(t, metrics.Handler(reg), accept, "application/vnd.google.protobuf")
	dec := expfmt.NewDecoder(bufio.NewReader(rec.Body), expfmt.ResponseFormat(rec.Header()))
	histograms := 0
	for {
		var f dto.MetricFamily
		if err := dec.Decode(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if f.GetType() != dto.MetricType_HISTOGRAM || !strings.HasPrefix(f.GetName(), "mcp_") {
			continue
		}
		histograms++
		checkNative(t, &f)
	}
	if histograms != 7 {
		t.Errorf("%d histograms, want 7", histograms)
	}
}

// checkNative fails unless f has native buckets beside the classic ones.
func checkNative(t *testing.T, f *dto.MetricFamily) {
	t.Helper()
	spans := 0
	for _, m := range f.GetMetric() {
		h := m.GetHistogram()
		// Schema 3, eight buckets for each power of two, is what a factor of 1.1 gives.
		if h.Schema == nil || h.GetSchema() != 3 {
			t.Errorf("%s: schema %v, want 3", f.GetName(), h.Schema)
		}
		if len(h.GetBucket()) < 14 {
			t.Errorf("%s: %d classic buckets", f.GetName(), len(h.GetBucket()))
		}
		spans += len(h.GetPositiveSpan())
	}
	if spans == 0 {
		t.Errorf("%s: no observation is in a native bucket", f.GetName())
	}
}

func TestNewRegistryHasRuntimeAndProcess(t *testing.T) {
	families := gatherFamilies(t, metrics.NewRegistry())
	for _, name := range []string{"go_goroutines", "process_open_fds"} {
		if _, ok := families[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
}
