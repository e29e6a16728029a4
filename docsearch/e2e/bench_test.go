package e2e

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkFirstSearch measures the time from the start of docsearch mcp, with an index
// and without a daemon, to the answer to the first search.
func BenchmarkFirstSearch(b *testing.B) {
	w := newWorld(b)
	stop := func() {
		if out, err := w.command("stop").CombinedOutput(); err != nil {
			b.Fatalf("docsearch stop: %v: %s", err, out)
		}
	}
	w.ready(w.agent())
	for b.Loop() {
		b.StopTimer()
		stop()
		b.StartTimer()
		cmd := w.command(w.serve()...)
		s, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(b.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := find(b.Context(), s, 3); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		_ = s.Close() // the next iteration starts another
		b.StartTimer()
	}
}
