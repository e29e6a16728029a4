package multiplex_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
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
		if len(lines) != 3 || !strings.Contains(lines[0], resolved+`"\"a\"" matchedBy=id`) || !strings.Contains(lines[1], `msg="server answers without ids`) || !strings.Contains(lines[2], "matchedBy=fifo") || len(lines[2]) > 300 {
			t.Errorf("got %q", lines)
		}
	})
}

// The line about an id of no request advises max-in-flight only where that helps.
func TestLogOfIDsOfNoRequest(t *testing.T) {
	for _, tc := range []struct {
		maxInFlight int
		steps       []step
		want        string
	}{
		{0, []step{forward(callA), server(result("77")), server(result("1")), discard}, "set max-in-flight to 1"},
		{1, []step{forward(callA), server(result("77")), discard}, "it gets one request at a time"},
		{1, []step{server(result("77"))}, "dropped"},
		{0, []step{forward(callA), server(result("1")), server(result("77")), discard}, "dropped"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			w := newWorld(t, multiplex.Options{MaxInFlight: tc.maxInFlight, Logger: slog.New(slog.NewTextHandler(&out, nil))}, 1)
			play(w, tc.steps)
			w.finish()
			if got := out.String(); strings.Count(got, "id") != 1 || !strings.Contains(got, tc.want) {
				t.Errorf("%+v: got %q", tc, got)
			}
		})
	}
}

// What a server can cause at will goes to Limited, which writes a few lines of each kind.
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
