package multiplex_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/throttle"
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

// Whatever a server sends, it cannot flood the log: of each kind of line a few are
// written, over all sessions with the server, and the next one has the count of the
// others.
func TestAServerCannotFloodTheLog(t *testing.T) {
	const n = 20_000
	many := func(step step) step {
		return func(w *world) {
			for range n {
				step(w)
				synctest.Wait()
			}
		}
	}
	for name, tc := range map[string]struct {
		message string
		most    int // in a burst
		step    step
	}{
		"no JSON-RPC":          {"server sent an invalid message", 5, server(`{"level":30,"msg":"listening"}`)},
		"no JSON":              {"server sent an invalid message", 5, server("listening")},
		"unusable answers":     {"server sent an unusable answer", 5, unusable},
		"answers to nothing":   {"message dropped", 100, server(result("77"))},
		"unknown cancellation": {"message dropped", 100, server(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)},
		"requests for nobody":  {"message dropped", 100, func(w *world) { server(roots)(w); synctest.Wait(); w.conn.take() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
				opts := multiplex.Options{Logger: log, Limited: throttle.NewLines().Logger(log)}
				first, second := newWorld(t, opts, 1), newWorld(t, opts, 1)
				play(first, []step{many(tc.step)})
				play(second, []step{tc.step})
				if got := strings.Count(out.String(), tc.message); got != tc.most {
					t.Errorf("%d lines, want %d", got, tc.most)
				}
				play(second, []step{after(time.Second), tc.step})
				if want := fmt.Sprintf("suppressed=%d\n", n+1-tc.most); !strings.HasSuffix(lastWith(out.String(), tc.message), want) {
					t.Errorf("the last line is %s, want %s", lastWith(out.String(), tc.message), want)
				}
				for _, w := range []*world{first, second} {
					discard(w)
					w.finish()
				}
			})
		})
	}
}

// unusable has the server answer a call with nonsense.
func unusable(w *world) {
	forward(callA)(w)
	synctest.Wait()
	var id struct{ ID json.RawMessage }
	_ = json.Unmarshal([]byte(w.conn.take()[0]), &id)
	server(`{"jsonrpc":"2.0","id":` + string(id.ID) + `}`)(w)
	synctest.Wait()
	w.clients[0].take()
}

// lastWith returns the last line that has part in it.
func lastWith(text, part string) (last string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			last = line
		}
	}
	return last
}
