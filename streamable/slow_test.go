package streamable_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/streamable"
)

// A client that reads none of its answers is closed once the process holds as many bytes as
// it may.
func TestUnreadAnswersAreBounded(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		const others = 1<<30 - 8<<20
		f.budget.Force(others)
		defer f.budget.Force(-others)
		f.backend.receive = func(c *connstate.Connection, m *jsonrpc.Message) {
			large := []byte(`"` + strings.Repeat("x", 2<<20) + `"`)
			time.AfterFunc(time.Second, func() { answer(c, m.ID, jsonrpc.NewResult(m.ID, large), "") }) // when all have asked
		}
		id := f.initialize("2025-11-25")
		for n := range 20 {
			defer f.post(request(fmt.Sprint(n+1), "work"), in(id, "Accept", "text/event-stream, application/json")...).close()
		}
		time.Sleep(2 * time.Second)
		if c := f.backend.last(); c.Reason() != connstate.ClosedSlow {
			t.Errorf("the connection is %v for %q, want closed for slow", c.State(), c.Reason())
		}
	})
}
