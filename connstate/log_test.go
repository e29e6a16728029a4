package connstate_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// logged returns the lines about requests that a connection logs at a level
// while do runs.
func logged(t *testing.T, level slog.Level, opts connstate.Options, do func(w *world)) []string {
	t.Helper()
	var out bytes.Buffer
	opts.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
	w := newWorld(t, opts, connstate.Client{})
	do(w)
	w.c.Close(connstate.ClosedClient)
	short := "connectionId=" + w.c.ShortID() + " "
	var lines []string
	for line := range strings.Lines(out.String()) {
		if !strings.Contains(line, "mcp POST") {
			continue
		}
		ssetest.WantText(t, "line", line, short)
		_, line, _ = strings.Cut(line, "level=")
		lines = append(lines, strings.TrimSpace(strings.Replace(line, short, "", 1)))
	}
	return lines
}

func checkLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	equal(t, "lines", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

// The first line of a request is written when its POST arrives, not when the
// gate lets it pass, and the duration counts from there. The metric has the same.
func TestRequestIsLoggedFromItsPOST(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := logged(t, slog.LevelDebug, connstate.Options{GateTimeout: time.Minute}, func(w *world) {
			r := w.ask("7", "tools/call")
			must(t, w.c.Enqueue(r, false))
			time.Sleep(3 * time.Second)
			w.release()
			time.Sleep(time.Second)
			finish(r, "")
			const name = `mcp_server_operation_duration_seconds_sum{error_type="",mcp_method_name="tools/call",network_transport="tcp"}`
			equal(t, "seconds in the metric", w.series(name), 4)
		})
		checkLines(t, lines,
			`DEBUG msg="mcp POST start" requestId=7 method=tools/call`,
			`DEBUG msg="mcp POST ok" requestId=7 method=tools/call duration=4s waited=3s`)
	})
}

// Errors of the gateway are logged with their message, those of a server or a tool are not:
// they may hold params.
func TestFailedRequestsAreLogged(t *testing.T) {
	long := strings.Repeat("x", 500)
	failed := func(reason string) string {
		return `DEBUG msg="mcp POST failed" requestId=1 method=a duration=0s reason=` + reason
	}
	secret := jsonrpc.NewError("1", jsonrpc.Errorf(jsonrpc.CodeInternalError, "the server said: hunter2"))
	for _, tt := range []struct {
		name string
		do   func(w *world, r *connstate.Request)
		want []string
	}{
		{"by the gateway", func(w *world, r *connstate.Request) {
			r.Fail(jsonrpc.Errorf(jsonrpc.CodeInternalError, "the server is still starting"), metrics.ErrorInitialization)
			finish(r, "") // too late
		}, []string{failed("initialization_error") + ` err="the server is still starting"`}},
		{"by the server", func(w *world, r *connstate.Request) { r.Answer(secret, "-32602") }, []string{failed("-32602")}},
		{"by the end of the connection", func(w *world, r *connstate.Request) {
			w.c.Close(connstate.ClosedClient)
			_ = begin(w, "2", "b")
		}, []string{failed("closed"), `DEBUG msg="mcp POST failed" requestId=2 method=b err="connection is closed"`}},
		{"refused", func(w *world, r *connstate.Request) {
			_ = begin(w, "1", "b")
			finish(r, "")
		}, []string{
			`DEBUG msg="mcp POST failed" requestId=1 method=b err="a request with this id is in flight"`,
			`DEBUG msg="mcp POST ok" requestId=1 method=a duration=0s`,
		}},
		{"what a peer puts into a line is bounded", func(w *world, r *connstate.Request) {
			finish(r, "")
			finish(w.ask(jsonrpc.ID(`"`+long+`"`), long), long)
		}, []string{
			`DEBUG msg="mcp POST ok" requestId=1 method=a duration=0s`,
			`DEBUG msg="mcp POST start" requestId="\"` + long[:63] + `" method=` + long[:64],
			`DEBUG msg="mcp POST failed" requestId="\"` + long[:63] + `" method=` + long[:64] + ` duration=0s reason=` + long[:64],
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines := logged(t, slog.LevelDebug, connstate.Options{}, func(w *world) { tt.do(w, w.ask("1", "a")) })
				checkLines(t, lines, append([]string{`DEBUG msg="mcp POST start" requestId=1 method=a`}, tt.want...)...)
			})
		})
	}
}

// A request that took long is a warning, and says whether it failed. A request that the client ended
// itself is none, nor is one that waited for the first session.
func TestSlowRequestIsAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := logged(t, slog.LevelInfo, connstate.Options{SlowRequest: time.Second}, func(w *world) {
			early := w.ask("0", "tools/call")
			time.Sleep(time.Minute)
			w.release()
			finish(early, "")
			var open []*connstate.Request
			for _, id := range []jsonrpc.ID{"1", "2", "3", "4", "5"} {
				open = append(open, w.ask(id, "tools/call"))
			}
			time.Sleep(time.Second - 1)
			finish(open[0], "")
			time.Sleep(time.Nanosecond)
			finish(open[1], "")
			open[2].Fail(jsonrpc.Errorf(jsonrpc.CodeInternalError, "no answer"), metrics.ErrorTimeout)
			finish(open[3], metrics.ErrorCanceled)
			w.c.Close(connstate.ClosedClient) // with 5 in flight
		})
		checkLines(t, lines,
			`WARN msg="mcp POST slow" requestId=2 method=tools/call duration=1s`,
			`WARN msg="mcp POST slow" requestId=3 method=tools/call duration=1s reason=timeout err="no answer"`)
	})
}
