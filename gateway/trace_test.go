package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
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
// name, whole seconds, parent.
func (rec traces) take(attrs ...string) (lines []string) {
	ended := rec.Ended()
	names := map[trace.SpanID]string{}
	for _, s := range ended {
		names[s.SpanContext().SpanID()] = s.SpanKind().String() + " " + s.Name()
	}
	for _, s := range ended {
		line := fmt.Sprintf("%s %s, %s", s.SpanKind(), s.Name(), s.EndTime().Sub(s.StartTime()).Truncate(time.Second))
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
	equal(t, "lines", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
}

func callWith(id, tool, meta string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","_meta":{` + meta + `}}}`
}

// slowServer starts in 2 s, and answers calls of tools after 1 s.
func slowServer() *server {
	return &server{
		dial:   func(context.Context, int) error { time.Sleep(2 * time.Second); return nil },
		handle: on("tools/call", late(time.Second)),
	}
}

// The trace of a request shows its time at the gate, in the queue and at the server, and goes
// on there.
func TestTraceOfRequest(t *testing.T) {
	rec, provider := newTraces()
	u := slowServer()
	withClient(t, u, gateway.Options{TracerProvider: provider, MaxInFlight: 1}, func(t *testing.T, p *peer) {
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
		got := u.session(t, 1).texts()
		wantLines(t, got[len(got)-2:],
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"first","_meta":{`+sent(ended[5])+`,"tracestate":"a=b"}}}`,
			`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"second","_meta":{"progressToken":3,`+sent(ended[7])+`}}}`)
		first := ended[6]
		if first.SpanContext().TraceID().String() != clientTrace || len(first.Links()) != 1 || first.Links()[0].SpanContext.SpanID() != ended[0].SpanContext().SpanID() {
			t.Errorf("trace %s, links %v", first.SpanContext().TraceID(), first.Links())
		}
		all := fmt.Sprint(first.Attributes())
		wantText(t, "text", all, `{"mcp.session.id":"`+p.c.ShortID()+`"}`, `{"network.transport":"tcp"}`, `{"mcp.method.name":"tools/call"}`)
	})
}

// The span of a connection that is refused ends, and says why.
func TestSpanOfARefusedConnectionEnds(t *testing.T) {
	rec, provider := newTraces()
	inFakeTime(t, &server{}, gateway.Options{TracerProvider: provider, MaxConnections: 1}, func(t *testing.T, g *gateway.Gateway) {
		connectReady(t, g)
		if _, err := g.Registry().Open(plain); err == nil {
			t.Fatal("a connection over the limit is open")
		}
		for _, s := range rec.Started() {
			if s.Name() == "connection opened" && s.EndTime().IsZero() {
				t.Error("a span has not ended")
			}
		}
		if !slices.ContainsFunc(rec.Ended(), func(s sdktrace.ReadOnlySpan) bool { return s.Status().Code == codes.Error }) {
			t.Error("no span tells of the refusal")
		}
	})
}

// spansNamed returns the ended spans with a name, of one kind.
func (rec traces) spansNamed(kind trace.SpanKind, name string) (found []sdktrace.ReadOnlySpan) {
	for _, s := range rec.Ended() {
		if s.Name() == name && s.SpanKind() == kind {
			found = append(found, s)
		}
	}
	return found
}

// The trace shows a lost session, its restart, and that a safe request was repeated.
func TestTraceOfLostSession(t *testing.T) {
	rec, provider := newTraces()
	u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "tools/list" && s.n == 1 {
			time.AfterFunc(time.Second, s.die)
		}
		return m.Method == "tools/list" && s.n == 1 || m.Method == "tools/call"
	}}
	withClient(t, u, gateway.Options{TracerProvider: provider}, func(t *testing.T, p *peer) {
		synctest.Wait()
		rec.Reset()
		p.post(callWith("1", "x", ""), request("2", "tools/list"))
		time.Sleep(5 * time.Second)
		got := rec.take("error.type", "mcp_sse.session.lost", "mcp_sse.attempt")
		slices.Sort(got)
		wantLines(t, got,
			"client initialize, 0s, in , mcp_sse.attempt=2, mcp_sse.session.lost=true",
			"client tools/call x, 1s, in server tools/call x, error.type=session_lost",
			"client tools/list, 0s, in server tools/list",
			"client tools/list, 1s, in server tools/list, error.type=session_lost",
			"internal gate, 0s, in server tools/list",
			"server tools/call x, 1s, error.type=session_lost",
			"server tools/list, 1s",
		)
	})
}

// A request that the server never gets has its time at the gate, and why it failed.
func TestTraceOfFailedStart(t *testing.T) {
	rec, provider := newTraces()
	u := &server{dial: func(context.Context, int) error { time.Sleep(time.Second); return errors.New("no such program") }}
	withClient(t, u, gateway.Options{TracerProvider: provider}, func(t *testing.T, p *peer) {
		p.post(request("1", "tools/list"))
		time.Sleep(time.Minute)
		synctest.Wait()
		failed := rec.spansNamed(trace.SpanKindClient, "initialize")
		if len(failed) == 0 || failed[0].Status().Code != codes.Error {
			t.Fatalf("%d attempts", len(failed))
		}
		got := rec.take("error.type")
		for _, want := range []string{"client initialize, 1s, in internal connection opened, error.type=start_failed", "server tools/list, 2s, error.type=initialization_error", "internal gate, 2s, in server tools/list"} {
			if !slices.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, strings.Join(got, "\n"))
			}
		}
	})
}

// No message of a client can break the traces: text is cut and made valid UTF-8, and a trace
// context that is none is not used. A request that nobody samples has its trace all the same.
func TestTraceOfHostileRequests(t *testing.T) {
	rec, provider := newTraces()
	u := &server{}
	withClient(t, u, gateway.Options{TracerProvider: provider}, func(t *testing.T, p *peer) {
		synctest.Wait()
		long := strings.Repeat("\u00fc", 1000)
		for i, msg := range []string{
			callWith("1", strings.Repeat("a", 63)+long, `"traceparent":"`+long+`"`),
			callWith(`"`+long[:200]+`"`, `\ud800`, `"traceparent":7,"tracestate":[]`),
			`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":[1]}`,
			`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":null}`,
			`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`,
			`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"_meta":7,"name":["x"]}}`,
			callWith("7", "x", `"traceparent":"00-00000000000000000000000000000000-00f067aa0ba902b7-01"`),
		} {
			rec.Reset()
			p.deliver(msg)
			ended := rec.Ended()
			s := ended[len(ended)-1]
			if s.SpanKind() != trace.SpanKindServer || s.Parent().IsValid() || !utf8.ValidString(fmt.Sprint(s.Name(), s.Attributes())) || len(s.Name()) > 100 {
				t.Errorf("%d: %s %q %v in %s", i, s.SpanKind(), s.Name(), s.Attributes(), s.Parent().TraceID())
			}
		}
		all := u.session(t, 1).texts()
		wantText(t, "text", all[len(all)-3], `"params":{"_meta":{"traceparent":"00-`)
		rec.Reset()
		p.deliver(callWith("8", "x", `"traceparent":"`+strings.TrimSuffix(clientParent, "1")+`0"`))
		if got := u.session(t, 1).last(); len(rec.Ended()) != 0 || !strings.Contains(got, clientTrace) || !strings.HasSuffix(got, `-00"}}}`) {
			t.Errorf("not sampled: %d spans, and the server got %s", len(rec.Ended()), got)
		}
		equal(t, "answers", len(p.take()), 8)
	})
}

// Over HTTP the headers name the parent, unless _meta does. The log and the exemplar name the
// trace.
func TestTraceOverHTTP(t *testing.T) {
	rec, provider := newTraces()
	var log bytes.Buffer
	opts := gateway.Options{TracerProvider: provider, Name: "docs", Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	inFakeTime(t, &server{}, opts, func(t *testing.T, g *gateway.Gateway) {
		srv := pipetest.Serve(g, nil, nil)
		defer srv.Stop()
		post := func(msg string) {
			res, err := srv.Client.Do(ssetest.Request(t.Context(), http.MethodPost, "http://localhost/mcp", msg, "Traceparent", otherParent, "Tracestate", "c=d"))
			must(t, err)
			defer res.Body.Close()
			if body, _ := io.ReadAll(res.Body); !bytes.Contains(body, []byte(`"result"`)) {
				t.Errorf("got %s", body)
			}
		}
		post(callWith("1", "header", ""))
		post(callWith("2", "meta", `"traceparent":"`+clientParent+`"`))
		for name, parent := range map[string]string{"header": otherParent, "meta": clientParent} {
			s := rec.spansNamed(trace.SpanKindServer, "tools/call "+name)[0]
			equal(t, name+": parent", "00-"+s.Parent().TraceID().String()+"-"+s.Parent().SpanID().String()+"-01", parent)
			wantText(t, "text", fmt.Sprint(s.Attributes()), `{"mcp_sse.server":"docs"}`)
		}
		rw := httptest.NewRecorder()
		g.Admin().ServeHTTP(rw, ssetest.Request(t.Context(), http.MethodGet, "/metrics", "", "Accept", "application/openmetrics-text;version=1.0.0"))
		wantText(t, "exemplar", rw.Body.String(), `# {trace_id="`+clientTrace+`"}`)
		if !strings.Contains(log.String(), `msg="mcp POST ok"`) || strings.Count(log.String(), "traceId="+clientTrace) != 2 {
			t.Errorf("the log has no trace:\n%s", log.String())
		}
		noProvider := opts
		noProvider.TracerProvider, noProvider.Registry = nil, gateway.PromRegistry(g)
		ssetest.WantError(t, "Reconfigure without the provider", g.Reconfigure(nil, noProvider), gateway.ErrFixed)
	})
}

// Without a provider, what a client says of its trace passes as it is.
func TestUntracedMetaPasses(t *testing.T) {
	u := &server{}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		p.deliver(callWith("1", "x", `"traceparent":"`+clientParent+`"`))
		equal(t, "the server got", u.session(t, 1).last(), `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"traceparent":"`+clientParent+`"}}}`)
	})
}
