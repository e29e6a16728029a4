package metrics_test

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
	if histograms != 5 {
		t.Errorf("%d histograms, want 5", histograms)
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
