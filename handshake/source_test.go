package handshake

import (
	"log/slog"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/closed"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A source is in one of the conditions of its table, and what that says is done.
func TestConditionsOfASource(t *testing.T) {
	type condition struct{ started, serving, ready, closed, life, replaced bool }
	retire := func(s *Supplier) {
		s.Successor(noServer{}, *s.Options())
		s.Retire()
	}
	end := func(s *Supplier) {
		s.Drain()
		s.Close()
	}
	for _, tc := range []struct {
		name string
		do   []func(*Supplier)
		want condition
	}{
		{"new", nil, condition{}},
		{"serving", []func(*Supplier){(*Supplier).Start}, condition{started: true}},
		{"draining", []func(*Supplier){(*Supplier).Start, (*Supplier).Drain},
			condition{started: true, serving: true, ready: true}},
		{"draining before Start", []func(*Supplier){(*Supplier).Drain}, condition{serving: true, ready: true}},
		{"closed", []func(*Supplier){(*Supplier).Start, end},
			condition{started: true, serving: true, ready: true, closed: true, life: true}},
		{"retired", []func(*Supplier){(*Supplier).Start, retire},
			condition{started: true, ready: true, life: true, replaced: true}},
		{"retired, at the end of its successor", []func(*Supplier){retire, end},
			condition{serving: true, ready: true, closed: true, life: true, replaced: true}},
	} {
		s := NewSupplier(noServer{}, SupplierOptions{Session: multiplex.Options{Logger: slog.New(slog.DiscardHandler)}})
		for _, do := range tc.do {
			do(s)
		}
		ssetest.Want(t, tc.name, condition{s.started.Load(), s.serving.Err() != nil, s.ready.Err() != nil,
			s.closed.Err() != nil, s.life.Err() != nil, closed.Is(s.replaced)}, tc.want)
		end(s)
		s.Wait()
	}
}
