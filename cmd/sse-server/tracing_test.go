package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
)

// collector is an OpenTelemetry collector.
type collector struct {
	*httptest.Server
	held chan struct{} // not nil: it answers nothing until that is closed

	mu      sync.Mutex
	spans   []*v1.Span
	service string
	headers http.Header
}

func newCollector(t *testing.T, held chan struct{}) *collector {
	t.Helper()
	c := &collector{held: held}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if c.held != nil {
			<-c.held
		}
		var export collectortrace.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &export); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.headers = r.Header
		for _, of := range export.ResourceSpans {
			c.service = attributes(of.Resource.Attributes)["service.name"]
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// startTraced starts the program with these variables of the process.
func startTraced(t *testing.T, variables map[string]string, args ...string) *program {
	t.Helper()
	for name, value := range variables {
		t.Setenv(name, value) // the SDK reads them itself
	}
	return startWith(t, variables, append([]string{"--addr", "127.0.0.1:0"}, args...)...)
}

func attributes(list []*commonv1.KeyValue) map[string]string {
	all := map[string]string{}
	for _, kv := range list {
		all[kv.Key] = kv.Value.GetStringValue()
	}
	return all
}

// traced calls a tool of the program's server, and returns the value of the metric of dropped
// spans.
func (p *program) traced(t *testing.T) string {
	t.Helper()
	client := newClient(t, &http.Transport{})
	callTools(t, &mcp.StreamableClientTransport{Endpoint: p.url, HTTPClient: client}, "echo")
	return p.droppedSpans(t)
}

func (p *program) droppedSpans(t *testing.T) string {
	t.Helper()
	_, body := get(t, newClient(t, &http.Transport{}), p.base()+"/metrics", "")
	_, after, _ := strings.Cut(body, "\nmcp_sse_spans_dropped_total ")
	value, _, _ := strings.Cut(after, "\n")
	return value
}

// The collector gets the requests of all kinds of clients, in the traces that they name, and
// the logs name these traces. The key of the collector is in no log.
func TestTraces(t *testing.T) {
	c := newCollector(t, nil)
	p := startTraced(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_HEADERS": "api-key=" + secret + ",broken=%zz" + secret,
		"OTEL_SERVICE_NAME": "gw",
	}, "--log-level", "debug", "--url", askServer(t).URL)
	client := newClient(t, &http.Transport{})
	callTools(t, &mcp.StreamableClientTransport{Endpoint: p.url, HTTPClient: client}, "echo", "missing")
	callTools(t, &mcp.SSEClientTransport{Endpoint: p.base() + "/sse", HTTPClient: client}, "fail")
	parent := withHeader{client.Transport, "Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	callModern(t, &http.Client{Transport: parent}, p.url, "echo", "")
	p.stop() // flushes

	c.mu.Lock()
	defer c.mu.Unlock()
	var got []string
	for _, span := range c.spans {
		if a := attributes(span.Attributes); span.Kind == v1.Span_SPAN_KIND_SERVER && a["gen_ai.tool.name"] != "" {
			got = append(got, strings.TrimSpace(span.Name+" "+a["error.type"]+" "+a["mcp.protocol.version"]))
		}
	}
	slices.Sort(got)
	if want := []string{"tools/call echo  2026-07-28", "tools/call echo  2026-07-28", "tools/call fail tool_error 2025-11-25", "tools/call missing -32602 2026-07-28"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, span := range c.spans {
		if hex.EncodeToString(span.ParentSpanId) == "00f067aa0ba902b7" && hex.EncodeToString(span.TraceId) == "4bf92f3577b34da6a3ce929d0e0e4736" {
			got = nil
		}
	}
	if got != nil {
		t.Error("no span is in the trace of the client")
	}
	if c.service != "gw" || c.headers.Get("Api-Key") != secret {
		t.Errorf("service %q, headers %v", c.service, c.headers)
	}
	if line := p.log.await(t, 1, "traceId=4bf92f3577b34da6a3ce929d0e0e4736"); strings.Contains(p.log.String(), secret) {
		t.Errorf("the key is in the log:\n%s%s", line, p.log.String())
	}
}

// A collector that is down costs its spans, which the log and the metrics say.
func TestTracesWithoutCollector(t *testing.T) {
	c := newCollector(t, nil)
	c.Close()
	p := startTraced(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_BSP_SCHEDULE_DELAY": "1"}, "--url", askServer(t).URL)
	p.traced(t)
	p.log.await(t, 1, "tracing failed")
	if got := p.droppedSpans(t); got == "0" || got == "" {
		t.Errorf("%q spans were dropped, want some", got)
	}
}

// A collector that hangs holds up no call and not the end.
func TestTracesWithSlowCollector(t *testing.T) {
	held := make(chan struct{})
	c := newCollector(t, held)
	defer close(held)
	p := startTraced(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_BSP_SCHEDULE_DELAY": "1", "OTEL_BSP_MAX_QUEUE_SIZE": "2"}, "--url", askServer(t).URL)
	if got := p.traced(t); got == "0" || got == "" {
		t.Errorf("%q spans were dropped, want those over 2", got)
	}
	p.stop()
	p.log.await(t, 1, "tracing failed")
}

func TestTracesOff(t *testing.T) {
	c := newCollector(t, nil)
	p := startTraced(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_SDK_DISABLED": "true"}, "--log-level", "debug", "--url", askServer(t).URL)
	p.traced(t)
	p.stop()
	if c.spans != nil || strings.Contains(p.log.String(), "traceId") {
		t.Errorf("%d spans, and the log\n%s", len(c.spans), p.log.String())
	}
}

// Variables that ask for what there is not are refused, and the error says what to set.
func TestTracesThatCannotBe(t *testing.T) {
	for _, tc := range []struct{ name, value, want string }{
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": set it to http/protobuf`},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", `is "http/json": set it`},
		{"OTEL_TRACES_EXPORTER", "zipkin", `OTEL_TRACES_EXPORTER is "zipkin": set it to otlp or none`},
	} {
		p := launchWith(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", tc.name: tc.value}, "check")
		if code := <-p.code; code != exit.Config || !strings.Contains(p.log.String(), tc.want) {
			t.Errorf("%s=%s: got %d %s", tc.name, tc.value, code, p.log.String())
		}
	}
}
