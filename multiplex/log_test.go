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
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := newWorld(t, multiplex.Options{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))}, 1)
		long := `"` + strings.Repeat("x", 500) + `"`
		play(w, []step{forward(callA), server(result("1")), forward(`{"jsonrpc":"2.0","id":` + long + `,"method":` + long + `}`), server(nullID), discard})
		w.finish()
		const resolved = `msg="mcp transport send resolve" connectionId=client-0 requestId=`
		lines := slices.Collect(strings.Lines(out.String()))
		if len(lines) != 2 || !strings.Contains(lines[0], resolved+`"\"a\"" matchedBy=id`) || !strings.Contains(lines[1], "matchedBy=fifo") || len(lines[1]) > 300 {
			t.Errorf("got %q", lines)
		}
	})
}

// Whatever a server sends, it cannot flood the log: of each kind of line a few are
// written, over all sessions with the server, and the next one has the count of the
// others.
func TestAServerCannotFloodTheLog(t *testing.T) {
	const n = 500
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
		"no JSON-RPC":         {"server sent an invalid message", 5, server(`{"level":30,"msg":"listening"}`)},
		"unusable answers":    {"server sent an unusable answer", 5, unusable},
		"requests for nobody": {"message dropped", 100, func(w *world) { server(roots)(w); synctest.Wait(); w.conn.take() }},
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
