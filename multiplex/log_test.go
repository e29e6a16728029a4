package multiplex_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/multiplex"
)

// How a request was found by its answer is in the log; the rest of its life is
// logged by connstate.
func TestLog(t *testing.T) {
	long := `"` + strings.Repeat("x", 500) + `"`
	tests := []struct {
		name  string
		level slog.Level
		opts  multiplex.Options
		steps []step
		want  []string // one after the other, parts of lines
	}{
		{"by id", slog.LevelDebug, multiplex.Options{}, []step{forward(callA), after(time.Second), server(result("1"))}, []string{
			`msg="mcp transport send resolve" connectionId=client-0 requestId="\"a\"" matchedBy=id`,
		}},
		{"fifo", slog.LevelDebug, multiplex.Options{MaxInFlight: 1}, []step{forward(callA), server(nullID)}, []string{"matchedBy=fifo"}},
		{"info", slog.LevelInfo, multiplex.Options{}, []step{forward(callA), after(time.Minute - 1), server(result("1"))}, nil},
		{"no answer", slog.LevelDebug, multiplex.Options{RequestTimeout: time.Second}, []step{forward(callA), after(time.Second)}, nil},
		{"what a peer puts into a line is bounded", slog.LevelDebug, multiplex.Options{}, []step{
			forward(`{"jsonrpc":"2.0","id":` + long + `,"method":` + long + `}`), server(result("1")),
		}, []string{"resolve"}},
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
				lines := slices.Collect(strings.Lines(out.String()))
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
