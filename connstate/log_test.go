package connstate_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
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
	w.c.Close(metrics.ClosedClient)
	short := "connectionId=" + w.c.ShortID() + " "
	var lines []string
	for line := range strings.Lines(out.String()) {
		if !strings.Contains(line, "mcp POST") {
			continue
		}
		if !strings.Contains(line, short) {
			t.Errorf("line %s: want %s", line, short)
		}
		_, line, _ = strings.Cut(line, "level=")
		lines = append(lines, strings.TrimSpace(strings.Replace(line, short, "", 1)))
	}
	return lines
}

func checkLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got lines\n%s\nwant\n%s", g, w)
	}
}

// errorOf is the gateway's answer to a request that failed.
func errorOf(id jsonrpc.ID, message string) []byte {
	return jsonrpc.NewError(id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", message))
}

// The first line of a request is written when its POST arrives, not when the
// gate lets it pass, and the duration counts from there.
func TestRequestIsLoggedFromItsPOST(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := logged(t, slog.LevelDebug, connstate.Options{GateTimeout: time.Minute}, func(w *world) {
			m := request(t, "7", "tools/call")
			must(t, w.c.BeginID(m.ID, m.Method))
			w.admit(m, "wait")
			time.Sleep(3 * time.Second)
			must(t, w.c.Release(func(*jsonrpc.Message) {}))
			time.Sleep(time.Second)
			w.c.AnswerNow(m.ID, jsonrpc.NewResult(m.ID, []byte("{}")), "")
		})
		checkLines(t, lines,
			`DEBUG msg="mcp POST start" requestId=7 method=tools/call`,
			`DEBUG msg="mcp POST ok" requestId=7 method=tools/call duration=4s`)
	})
}

// The log and the metric have the same duration.
func TestLogAndMetricHaveOneDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		lines := logged(t, slog.LevelDebug, connstate.Options{}, func(made *world) {
			w = made
			must(t, w.c.BeginID("1", "ping"))
			time.Sleep(2500 * time.Millisecond)
			w.c.Finish("1", "")
		})
		if !strings.HasSuffix(lines[1], "duration=2.5s") {
			t.Errorf("got %s, want 2.5s", lines[1])
		}
		const name = `mcp_server_operation_duration_seconds{error_type="",mcp_method_name="ping",network_transport="tcp"}`
		if got := sums(t, w.prom)[name]; got != 2.5 {
			t.Errorf("the metric has %v s, want 2.5", got)
		}
	})
}

func TestFailedRequestsAreLogged(t *testing.T) {
	secret := "the server said: hunter2"
	long := strings.Repeat("x", 500)
	for _, tt := range []struct {
		name string
		do   func(w *world)
		want []string
	}{
		{"gate timeout", func(w *world) {
			w.c.AnswerNow("1", errorOf("1", "the server is still starting"), metrics.ErrorInitialization)
		}, []string{`DEBUG msg="mcp POST failed" requestId=1 method=a duration=0s reason=initialization_error err="the server is still starting"`}},
		{"an error of the server has its code, and not its words", func(w *world) {
			_ = w.c.Answer("1", errorOf("1", secret), "-32602")
		}, []string{`DEBUG msg="mcp POST failed" requestId=1 method=a duration=0s reason=-32602`}},
		{"whatever its code is", func(w *world) {
			_ = w.c.Answer("1", errorOf("1", secret), "hunter")
		}, []string{`DEBUG msg="mcp POST failed" requestId=1 method=a duration=0s reason=hunter`}},
		{"nor has an error of a tool", func(w *world) {
			_ = w.c.Answer("1", jsonrpc.NewResult("1", []byte(`{"isError":true}`)), metrics.ErrorTool)
		}, []string{`DEBUG msg="mcp POST failed" requestId=1 method=a duration=0s reason=tool_error`}},
		{"the end of the connection", func(w *world) {
			w.c.Close(metrics.ClosedClient)
		}, []string{`DEBUG msg="mcp POST failed" requestId=1 method=a duration=0s reason=closed`}},
		{"a second request with the id", func(w *world) {
			_ = w.c.BeginID("1", "b")
			w.c.Finish("1", "")
		}, []string{
			`DEBUG msg="mcp POST failed" requestId=1 method=b err="a request with this id is in flight"`,
			`DEBUG msg="mcp POST ok" requestId=1 method=a duration=0s`,
		}},
		{"too many", func(w *world) {
			_ = w.c.BeginID("2", "b")
			_ = w.c.BeginID("3", "c")
			w.c.Finish("1", "")
			w.c.Finish("2", "")
		}, []string{
			`DEBUG msg="mcp POST start" requestId=2 method=b`,
			`DEBUG msg="mcp POST failed" requestId=3 method=c err="too many requests in flight"`,
			`DEBUG msg="mcp POST ok" requestId=1 method=a duration=0s`,
			`DEBUG msg="mcp POST ok" requestId=2 method=b duration=0s`,
		}},
		{"a closed connection", func(w *world) {
			w.c.Finish("1", "")
			w.c.Close(metrics.ClosedClient)
			_ = w.c.BeginID("2", "b")
		}, []string{
			`DEBUG msg="mcp POST ok" requestId=1 method=a duration=0s`,
			`DEBUG msg="mcp POST failed" requestId=2 method=b err="connection is closed"`,
		}},
		{"an answer that came before", func(w *world) {
			w.c.Finish("1", "")
			w.c.Finish("1", metrics.ErrorTimeout)
		}, []string{`DEBUG msg="mcp POST ok" requestId=1 method=a duration=0s`}},
		{"what a peer puts into a line is bounded", func(w *world) {
			w.c.Finish("1", "")
			_ = w.c.BeginID(jsonrpc.ID(long), long)
			w.c.Finish(jsonrpc.ID(long), long)
		}, []string{
			`DEBUG msg="mcp POST ok" requestId=1 method=a duration=0s`,
			`DEBUG msg="mcp POST start" requestId=` + long[:64] + ` method=` + long[:64],
			`DEBUG msg="mcp POST failed" requestId=` + long[:64] + ` method=` + long[:64] + ` duration=0s reason=` + long[:64],
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines := logged(t, slog.LevelDebug, connstate.Options{MaxPending: 2}, func(w *world) {
					must(t, w.c.BeginID("1", "a"))
					tt.do(w)
				})
				checkLines(t, lines, append([]string{`DEBUG msg="mcp POST start" requestId=1 method=a`}, tt.want...)...)
			})
		})
	}
}

// A request that took long is a warning, the wait at the gate included, and says
// whether it failed. What the client ended itself is none.
func TestSlowRequestIsAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := logged(t, slog.LevelInfo, connstate.Options{SlowRequest: time.Second}, func(w *world) {
			for _, id := range []jsonrpc.ID{"1", "2", "3", "4", "5"} {
				must(t, w.c.BeginID(id, "tools/call"))
			}
			time.Sleep(time.Second - 1)
			w.c.Finish("1", "")
			time.Sleep(time.Nanosecond)
			w.c.Finish("2", "")
			w.c.AnswerNow("3", errorOf("3", "no answer"), metrics.ErrorTimeout)
			w.c.AnswerNow("4", errorOf("4", "cancelled"), metrics.ErrorCanceled)
			w.c.Close(metrics.ClosedClient) // with 5 in flight
		})
		checkLines(t, lines,
			`WARN msg="mcp POST slow" requestId=2 method=tools/call duration=1s`,
			`WARN msg="mcp POST slow" requestId=3 method=tools/call duration=1s reason=timeout err="no answer"`)
	})
}

func TestNoRequestIsSlowWithoutALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checkLines(t, logged(t, slog.LevelInfo, connstate.Options{}, func(w *world) {
			must(t, w.c.BeginID("1", "a"))
			time.Sleep(time.Hour)
			w.c.Finish("1", "")
		}))
	})
}
