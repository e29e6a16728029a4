package multiplex_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
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
		if len(lines) != 3 || !strings.Contains(lines[0], resolved+`"\"a\"" matchedBy=id`) || !strings.Contains(lines[1], `msg="server does not name its answers`) || !strings.Contains(lines[2], "matchedBy=fifo") || len(lines[2]) > 300 {
			t.Errorf("got %q", lines)
		}
	})
}

// That a server does not name its answers is in the log once for each session.
func TestLogOfAServerThatDoesNotNameItsAnswers(t *testing.T) {
	for _, first := range []string{nullID, noID, result("77"), result(`"x"`)} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			w := newWorld(t, multiplex.Options{Logger: slog.New(slog.NewTextHandler(&out, nil))}, 1)
			play(w, []step{forward(callA), server(first), forward(callB), server(first), forward(callC), server(noID), discard})
			w.finish()
			if got := out.String(); strings.Count(got, "msg=") != 1 || !strings.Contains(got, "server does not name its answers") {
				t.Errorf("after %s: got %q", first, got)
			}
		})
	}
}

// A line that a server can cause at will goes to Limited, which writes a few lines of each kind.
func TestAServerCannotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, limited bytes.Buffer
		logger := func(to *bytes.Buffer) *slog.Logger {
			return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
		w := newWorld(t, multiplex.Options{Logger: logger(&out), Limited: logger(&limited)}, 1)
		play(w, []step{
			forward(callA), server("listening", `{"jsonrpc":"2.0","id":1}`, result("77"), cancelOf("1"), roots), discard, fault(jsonrpc.ErrTooLong),
		})
		w.finish()
		ssetest.WantText(t, "limited lines", limited.String(), "server sent an invalid message", "server sent an unusable answer", "message dropped", "server sent a message over the limit")
		if out.Len() > 0 {
			t.Errorf("not limited:\n%s", out.String())
		}
	})
}
