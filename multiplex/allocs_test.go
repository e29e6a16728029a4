package multiplex_test

import (
	"fmt"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// A message costs at most two allocations each way: the entry of the table and the
// bytes to the server; the bytes to the client.
func TestAllocations(t *testing.T) {
	for _, opts := range []multiplex.Options{{}, {Shared: true}} {
		for _, meta := range []string{"", `,"_meta":{"progressToken":7}`} {
			conn, client := &pushConn{}, &countingClient{}
			caller := multiplex.New(conn, opts).Attach(client, "bench", "ann")
			request := parse(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"`+meta+`}}`)
			const runs = 100
			answers := make([][]byte, 3*runs)
			for i := range answers {
				answers[i] = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, i+1)
			}
			next := 0
			roundTrip := testing.AllocsPerRun(runs, func() {
				_ = caller.Forward(request)
				conn.receive(answers[next], nil)
				next++
			})
			if roundTrip > 4 {
				t.Errorf("shared %v, %q: %v allocations there and back, want at most 4", opts.Shared, meta, roundTrip)
			}
			if client.answers != next {
				t.Errorf("%d of %d were answered", client.answers, next)
			}
			back := testing.AllocsPerRun(runs, func() {
				_, _ = jsonrpc.ParseReply(answers[0])
			})
			if back > 0 {
				t.Errorf("reading a response takes %v allocations, want none", back)
			}
		}
	}
}
