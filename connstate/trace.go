package connstate

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// w3c reads and writes traceparent and tracestate (W3C Trace Context).
var w3c propagation.TraceContext

// traced is the trace of a request, after the OpenTelemetry conventions for MCP: a span of
// kind server, and in it one of kind client for the time at the server, and those of waits.
type traced struct {
	ctx    context.Context // with the span of the request
	name   string
	attrs  trace.SpanStartEventOption
	server atomic.Pointer[trace.Span] // nil: no server has the request
	over   atomic.Bool                // it is answered, or its connection closed: no span begins any more
}

// SetParent notes the W3C trace context in the headers of the HTTP request that brought m.
// It does nothing without Options.Tracer.
func (c ForTransport) SetParent(m *jsonrpc.Message, header map[string][]string) {
	if c.opts.Tracer == nil || m.Kind != jsonrpc.Request {
		return
	}
	m.Trace = make(map[string]string)
	for _, name := range w3c.Fields() {
		m.Trace[name] = propagation.HeaderCarrier(header).Get(name)
	}
}

// StartSpan starts a span about the connection itself, which the caller must end. Without
// Options.Tracer the span does nothing.
func (c ForHandler) StartSpan(name string, options ...trace.SpanStartOption) trace.Span {
	return c.startSpan(name, options...)
}

// startSpan begins a span below that of the connection. Without a Tracer it returns one that records nothing, so the
// caller ends it either way.
func (c *Connection) startSpan(name string, options ...trace.SpanStartOption) trace.Span {
	ctx := context.Background()
	if c.opts.Tracer == nil {
		return trace.SpanFromContext(ctx)
	}
	_, span := c.opts.Tracer.Start(trace.ContextWithSpan(ctx, c.span), name,
		append(options, trace.WithAttributes(c.spanAttrs()...))...)
	return span
}

// spanAttrs returns the attributes of all spans of the connection.
func (c *Connection) spanAttrs() []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String("mcp.session.id", c.ShortID())}
	switch c.client.Transport {
	case TransportInProcess: // there is no network
	case TransportStdio:
		attrs = append(attrs, attribute.String("network.transport", "pipe"))
	default:
		attrs = append(attrs, attribute.String("network.transport", "tcp"))
	}
	if c.opts.Server != "" {
		attrs = append(attrs, attribute.String("mcp_sse.server", c.opts.Server))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	version := c.known.ProtocolVersion
	if version == "" && c.known.Initialized != nil {
		version = c.known.Initialized.ProtocolVersion
	}
	if version != "" {
		attrs = append(attrs, attribute.String("mcp.protocol.version", spanText(version)))
	}
	return attrs
}

// startTrace starts the span of a request. Its parent is the trace context in params._meta
// (SEP-414), else that of the HTTP request.
func (r *Request) startTrace(m *jsonrpc.Message) {
	c := r.c
	if c.opts.Tracer == nil {
		return
	}
	meta := propagation.MapCarrier{}
	for _, name := range w3c.Fields() {
		meta[name], _ = m.Param("_meta", name).Text()
	}
	t := &traced{ctx: context.Background(), name: spanText(r.Method)}
	t.ctx = w3c.Extract(w3c.Extract(t.ctx, propagation.MapCarrier(m.Trace)), meta)
	attrs := append(c.spanAttrs(), attribute.String("mcp.method.name", t.name))
	key := map[string]string{mcp.MethodCallTool: "gen_ai.tool.name",
		mcp.MethodGetPrompt: "gen_ai.prompt.name"}[r.Method]
	if target, ok := m.Param("name").Text(); ok && key != "" {
		t.name += " " + spanText(target)
		attrs = append(attrs, attribute.String(key, spanText(target)))
	}
	t.attrs = trace.WithAttributes(attrs...)
	id := attribute.String("jsonrpc.request.id", spanText(strings.Trim(string(r.ID), `"`)))
	t.ctx, _ = c.opts.Tracer.Start(t.ctx, t.name, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithTimestamp(r.Started),
		t.attrs, trace.WithAttributes(id), trace.WithLinks(trace.Link{SpanContext: c.span.SpanContext()}))
	r.trace = t
}

// spanText is clip.Short for traces, whose text must be valid UTF-8.
func spanText(s string) string { return validText(s, clip.ShortBytes) }

// NoteWait records that the request has waited since then, until now, for what. It does
// nothing for a nil *Request.
func (r *Request) NoteWait(what string, since time.Time) {
	if r != nil && r.trace != nil {
		_, span := r.c.opts.Tracer.Start(r.trace.ctx, what, trace.WithTimestamp(since))
		span.End()
	}
}

// ToServer notes that m, the message of the request, goes to a server now, and returns it
// with the trace context. Without one, and for a nil *Request, it returns m itself.
func (r *Request) ToServer(m *jsonrpc.Message) *jsonrpc.Message {
	if r == nil || r.trace == nil {
		return m
	}
	r.FromServer(metrics.ErrorSessionLost) // it goes to another one
	ctx, span := r.c.opts.Tracer.Start(r.trace.ctx, r.trace.name, trace.WithSpanKind(trace.SpanKindClient),
		r.trace.attrs)
	if r.trace.server.Store(&span); r.trace.over.Load() { // nobody else ends the span
		r.FromServer(metrics.ErrorSessionLost)
	}
	return inject(ctx, m)
}

// FromServer notes that the server no longer has the request, with errorType as its outcome.
func (r *Request) FromServer(errorType string) {
	if r.trace == nil {
		return
	}
	if span := r.trace.server.Swap(nil); span != nil {
		EndSpan(*span, errorType, "")
	}
}

// inject returns m with the trace context of ctx in params._meta (SEP-414).
func inject(ctx context.Context, m *jsonrpc.Message) *jsonrpc.Message {
	params, meta := m.Params(), json.RawMessage("{}")
	if params == nil {
		params = meta
	}
	if value, ok := rawjson.Member(params, "_meta"); ok {
		meta = value
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	for _, name := range w3c.Fields() {
		meta = rawjson.RemoveMember(meta, name)
		if value := carrier[name]; value != "" {
			meta = rawjson.SetMember(meta, json.RawMessage(strconv.Quote(value)), name)
		}
	}
	next, err := jsonrpc.Parse(rawjson.SetMember(m.Raw(), rawjson.SetMember(params, meta, "_meta"), "params"))
	if err != nil { // m is valid, so this is
		return m
	}
	next.Context = m.Context
	return next
}

// endTrace ends the spans of an answered request. message is that of [Request.answer].
func (r *Request) endTrace(errorType, message string) {
	if r.trace != nil {
		r.trace.over.Store(true)
		r.FromServer(errorType)
		EndSpan(trace.SpanFromContext(r.trace.ctx), errorType, message)
	}
}

// EndSpan ends a span with its outcome: errorType is empty for success.
func EndSpan(span trace.Span, errorType, message string) {
	if errorType != "" {
		span.SetAttributes(attribute.String("error.type", spanText(errorType)))
		span.SetStatus(codes.Error, spanText(message))
	}
	span.End()
}

// spanContext returns the context of the request's span; it is not valid without one.
func (r *Request) spanContext() trace.SpanContext {
	if r.trace == nil {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(r.trace.ctx)
}
