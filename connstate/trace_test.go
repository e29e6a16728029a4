package connstate_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// Without a tracer a request costs no more than it did before there was tracing.
func TestUntracedRequestAllocates(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	w := newWorld(t, connstate.Options{}, connstate.Client{Dialect: connstate.EventMessage})
	w.c.DeliverTo(func(connstate.Event) {})
	m := parse(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"traceparent":"`+parent+`"}}}`)
	header := map[string][]string{"Traceparent": {parent}}
	bare := func() {
		r, _ := w.c.BeginRequest(m)
		r.Answer(nil, "")
	}
	whole := func() {
		w.c.SetParent(m, header)
		r, _ := w.c.BeginRequest(m)
		if r.ToServer(m) != m {
			t.Fatal("the message has changed")
		}
		r.Answer(nil, "")
	}
	equal(t, "allocations", testing.AllocsPerRun(100, whole), testing.AllocsPerRun(100, bare))
}
