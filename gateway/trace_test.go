package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	clientTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientParent = "00-" + clientTrace + "-00f067aa0ba902b7-01"
	otherParent  = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// traces records the spans of a gateway.
type traces struct{ *tracetest.SpanRecorder }

func newTraces() (traces, trace.TracerProvider) {
	rec := traces{tracetest.NewSpanRecorder()}
	return rec, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(rec), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
}

// take returns the ended spans in the order of their ends, with these attributes: kind,
// name, time, parent.
func (rec traces) take(attrs ...string) (lines []string) {
	ended := rec.Ended()
	names := map[trace.SpanID]string{}
	for _, s := range ended {
		names[s.SpanContext().SpanID()] = s.SpanKind().String() + " " + s.Name()
	}
	for _, s := range ended {
		line := fmt.Sprintf("%s %s, %s", s.SpanKind(), s.Name(), s.EndTime().Sub(s.StartTime()))
		if p := s.Parent(); p.IsValid() {
			name := names[p.SpanID()]
			if p.IsRemote() {
				name = "remote " + p.SpanID().String()
			}
			line += ", in " + name
		}
		for _, kv := range s.Attributes() {
			if slices.Contains(attrs, string(kv.Key)) {
				line += fmt.Sprintf(", %s=%s", kv.Key, kv.Value.String())
			}
		}
		lines = append(lines, line)
	}
	rec.Reset()
	return lines
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func callWith(id, tool, meta string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","_meta":{` + meta + `}}}`
}

// slowServer starts in 2 s, and answers calls of tools after 1 s.
func slowServer() *server {
	return &server{
		dial: func(context.Context, int) error { time.Sleep(2 * time.Second); return nil },
		handle: func(s *serverSession, m *jsonrpc.Message) bool {
			if m.Method == "tools/call" {
				time.AfterFunc(time.Second, func() { s.answer(m) })
			}
			return m.Method == "tools/call"
		},
	}
}

// The trace of a request shows its time at the gate, in the queue and at the server, and goes
// on there.
func TestTraceOfRequest(t *testing.T) {
	rec, provider := newTraces()
	u := slowServer()
	inFakeTime(t, u, gateway.Options{TracerProvider: provider, MaxInFlight: 1}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(callWith("1", "first", `"traceparent":"`+clientParent+`","tracestate":"a=b"`), callWith(`"x"`, "second", `"progressToken":7,"tracestate":"stale=1"`))
		time.Sleep(5 * time.Second)
		p.want(answered("1", 1, "tools/call"), answered(`"x"`, 1, "tools/call"))
		ended := rec.Ended()
		wantLines(t, rec.take("jsonrpc.request.id", "gen_ai.tool.name", "error.type", "mcp_sse.session.source", "mcp_sse.attempt"),
			"internal connection opened, 0s",
			"client initialize, 2s, in internal connection opened, mcp_sse.attempt=1, mcp_sse.session.source=start",
			"internal gate, 2s, in server tools/call first",
			"internal gate, 2s, in server tools/call second",
			"internal queue, 1s, in server tools/call second",
			"client tools/call first, 1s, in server tools/call first, gen_ai.tool.name=first",
			"server tools/call first, 3s, in remote 00f067aa0ba902b7, gen_ai.tool.name=first, jsonrpc.request.id=1",
			"client tools/call second, 1s, in server tools/call second, gen_ai.tool.name=second",
			"server tools/call second, 4s, gen_ai.tool.name=second, jsonrpc.request.id=x",
		)
		sent := func(s sdktrace.ReadOnlySpan) string {
			return `"traceparent":"00-` + s.SpanContext().TraceID().String() + "-" + s.SpanContext().SpanID().String() + `-01"`
		}
		got := u.session(t, 1).messages()
		wantLines(t, got[len(got)-2:],
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"first","_meta":{`+sent(ended[5])+`,"tracestate":"a=b"}}}`,
			`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"second","_meta":{"progressToken":3,`+sent(ended[7])+`}}}`)
		first := ended[6]
		if first.SpanContext().TraceID().String() != clientTrace || len(first.Links()) != 1 || first.Links()[0].SpanContext.SpanID() != ended[0].SpanContext().SpanID() {
			t.Errorf("trace %s, links %v", first.SpanContext().TraceID(), first.Links())
		}
		all := fmt.Sprint(first.Attributes())
		for _, want := range []string{`{"mcp.session.id":"` + p.c.ShortID() + `"}`, `{"network.transport":"tcp"}`, `{"mcp.method.name":"tools/call"}`} {
			if !strings.Contains(all, want) {
				t.Errorf("no %s in %s", want, all)
			}
		}
	})
}
