package observe

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
)

// Tracing exports spans as the variables OTEL_* say. Nothing waits for the collector: spans
// that cannot be exported are dropped, which is logged and counted.
type Tracing struct {
	sdktrace.SpanExporter
	Provider trace.TracerProvider // nil: there are no traces
	Dropped  func(n int)          // counts spans that are dropped; set it before the first one
	waiting  atomic.Int64         // spans that are not exported
	log      *slog.Logger         // limited
}

// NewTracing returns what the variables ask for. The caller must call Close.
func NewTracing(ctx context.Context, lookupEnv func(string) (string, bool), log *slog.Logger) (t *Tracing, err error) {
	env := func(name string) string { value, _ := lookupEnv("OTEL_" + name); return value }
	t = &Tracing{Dropped: func(int) {}, log: throttle.NewLines().Logger(log)}
	protocol := cmp.Or(env("EXPORTER_OTLP_TRACES_PROTOCOL"), env("EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	switch exporter := env("TRACES_EXPORTER"); {
	case strings.EqualFold(env("SDK_DISABLED"), "true"), exporter == "none",
		exporter+env("EXPORTER_OTLP_ENDPOINT")+env("EXPORTER_OTLP_TRACES_ENDPOINT") == "":
		return t, nil
	case exporter != "" && exporter != "otlp":
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: set it to otlp or none", exporter)
	case protocol != "http/protobuf":
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: set it to http/protobuf, "+
			"and the endpoint to the collector's port for that, such as http://localhost:4318", protocol)
	}
	otel.SetLogger(logr.Discard()) // it would log headers
	otel.SetErrorHandler(otel.ErrorHandlerFunc(t.fail))
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "sse-server"),
		attribute.String("service.version", buildinfo.Read().Version)), resource.WithTelemetrySDK(),
		resource.WithFromEnv())
	if err == nil {
		t.SpanExporter, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("OTEL_*: %w", err)
	}
	room, _ := strconv.Atoi(env("BSP_MAX_QUEUE_SIZE"))
	room = cmp.Or(max(room, 0), sdktrace.DefaultMaxQueueSize)
	queue := spanQueue{sdktrace.NewBatchSpanProcessor(t, sdktrace.WithMaxQueueSize(room)), t, int64(room)}
	t.Provider = sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSpanProcessor(queue))
	return t, nil
}

// fail logs an error of the SDK, which may hold all that the collector has answered.
func (t *Tracing) fail(err error) { t.log.Warn("tracing failed", "err", fmt.Sprintf("%.512s", err)) }

// Close exports the spans that wait, within 2 s.
func (t *Tracing) Close() {
	if t.Provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := t.Provider.(*sdktrace.TracerProvider).Shutdown(ctx); err != nil {
		t.fail(err)
		_ = t.Shutdown(ctx) // ends the request under way
	}
}

// ExportSpans sends spans to the collector.
func (t *Tracing) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := t.SpanExporter.ExportSpans(ctx, spans)
	t.waiting.Add(-int64(len(spans)))
	if err != nil {
		t.Dropped(len(spans))
	}
	return err
}

// spanQueue is the queue of the SDK, which would not tell what it drops.
type spanQueue struct {
	sdktrace.SpanProcessor
	t    *Tracing
	room int64
}

// OnEnd queues a span, or drops it if there is no room.
func (q spanQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	switch {
	case !s.SpanContext().IsSampled():
	case q.t.waiting.Add(1) > q.room:
		q.t.waiting.Add(-1)
		q.t.Dropped(1)
	default:
		q.SpanProcessor.OnEnd(s)
	}
}
