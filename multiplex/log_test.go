package multiplex_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/multiplex"
)

// The life of a request can be read from the log, under the names of design
// section 7.
func TestLog(t *testing.T) {
	long := `"` + strings.Repeat("x", 500) + `"`
	tests := []struct {
		name  string
		level slog.Level
		opts  multiplex.Options
		steps []step
		want  []string // one after the other, parts of lines
	}{
		{"debug", slog.LevelDebug, multiplex.Options{}, []step{forward(callA), after(time.Second), server(result("1"))}, []string{
			`msg="mcp POST start" connectionId=client-0 requestId="\"a\"" method=tools/call`,
			`msg="mcp transport send resolve" connectionId=client-0 requestId="\"a\"" method=tools/call matchedBy=id`,
			`msg="mcp POST ok" connectionId=client-0 requestId="\"a\"" method=tools/call duration=1s`,
		}},
		{"fifo", slog.LevelDebug, multiplex.Options{MaxInFlight: 1}, []step{forward(callA), server(nullID)}, []string{
			"start", "matchedBy=fifo", "ok",
		}},
		{"slow", slog.LevelInfo, multiplex.Options{SlowRequest: time.Second}, []step{
			forward(callA), after(time.Second - 1), server(result("1")), forward(callB), after(time.Second), server(result("2")),
		}, []string{`level=WARN msg="mcp POST slow" connectionId=client-0 requestId="\"b\"" method=tools/call duration=1s`}},
		{"failed", slog.LevelDebug, multiplex.Options{RequestTimeout: time.Second}, []step{forward(callA), after(time.Second)}, []string{
			"start", `msg="mcp POST failed" connectionId=client-0 requestId="\"a\"" method=tools/call duration=1s err=`,
		}},
		{"what a peer puts into a line is bounded", slog.LevelDebug, multiplex.Options{}, []step{
			forward(`{"jsonrpc":"2.0","id":` + long + `,"method":` + long + `}`), server(result("1")),
		}, []string{"start", "resolve", "ok"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				tt.opts.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: tt.level}))
				w := newWorld(t, tt.opts, 1)
				play(w, tt.steps)
				w.conn.take()
				w.clients[0].take()
				w.finish()
				lines := strings.Split(strings.TrimSpace(out.String()), "\n")
				if len(lines) != len(tt.want) {
					t.Fatalf("got %d lines:\n%s\nwant %d", len(lines), out.String(), len(tt.want))
				}
				for i, want := range tt.want {
					if !strings.Contains(lines[i], want) || len(lines[i]) > 500 {
						t.Errorf("line %d = %.600s, want %s", i, lines[i], want)
					}
				}
			})
		})
	}
}
