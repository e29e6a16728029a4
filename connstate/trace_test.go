package connstate_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// untraced returns two ways of a request through a connection without a tracer: without the steps
// of tracing, and with them.
func untraced(t testing.TB) (bare, whole func()) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	w := newWorld(t, connstate.Options{}, connstate.Client{Dialect: connstate.EventMessage})
	w.c.DeliverTo(func(connstate.Event) {})
	m := parse(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"traceparent":"`+parent+`"}}}`)
	header := map[string][]string{"Traceparent": {parent}}
	bare = func() {
		r, _ := w.c.Begin(m)
		r.Answer(nil, "")
	}
	return bare, func() {
		w.c.SetParent(m, header)
		r, _ := w.c.Begin(m)
		if r.ToServer(m) != m {
			t.Fatal("the message has changed")
		}
		r.Answer(nil, "")
	}
}

// Without a tracer a request costs no more than it did before there was tracing.
func TestUntracedRequestAllocates(t *testing.T) {
	bare, whole := untraced(t)
	equal(t, "allocations", testing.AllocsPerRun(100, whole), testing.AllocsPerRun(100, bare))
}

func BenchmarkUntraced(b *testing.B) {
	bare, whole := untraced(b)
	for name, request := range map[string]func(){"bare": bare, "whole": whole} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				request()
			}
		})
	}
}
