package buffer

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// free reports whether all but n bytes of a budget of 1 MiB are free.
func free(t *testing.T, held *budget.Account, n int) {
	t.Helper()
	held.Force(1<<20 - n - 1)
	defer held.Give(1<<20 - n - 1)
	if held.Full() {
		t.Errorf("over %d bytes are held", n)
	}
	held.Force(1)
	defer held.Give(1)
	if !held.Full() {
		t.Errorf("under %d bytes are held", n)
	}
}

func TestQueueTakesOfTheBudget(t *testing.T) {
	held := budget.New(1<<20, nil)
	q := NewQueue(SendLimit, held)
	msg := make([]byte, 350<<10)
	size := len(msg) + ItemCost
	for range 2 {
		if err := q.Offer(msg); err != nil {
			t.Fatal(err)
		}
	}
	err := q.Offer(msg)
	if !errors.Is(err, jsonrpc.ErrBusy) || !errors.Is(err, budget.ErrBusy) {
		t.Errorf("over the budget: %v", err)
	}
	free(t, held, 2*size)
	for left := 2; left > 0; left-- { // the one that is out counts until the next Pop
		if _, err := q.Pop(); err != nil {
			t.Fatal(err)
		}
		free(t, held, left*size)
	}
	q.Abort(jsonrpc.ErrClosed)
	free(t, held, 0)

	held.Force(1 << 20)
	q = NewQueue(SendLimit, held)
	if err := q.Offer(make([]byte, 1000)); err != nil {
		t.Errorf("a short message: %v", err)
	}
	if err := q.Offer(make([]byte, budget.Free)); !errors.Is(err, budget.ErrBusy) {
		t.Errorf("over what is free: %v", err)
	}
	q.Abort(jsonrpc.ErrClosed)
}

// A queue for what a server sends lets writers wait while the budget is used up, and
// one message always passes.
func TestFullBudgetSlowsWriters(t *testing.T) {
	held := budget.New(1<<20, nil)
	held.Force(1 << 20)
	q := NewQueue(SendLimit, held)
	if err := q.Push(make([]byte, 100<<10)); err != nil {
		t.Fatal(err)
	}
	second := make(chan error)
	go func() { second <- q.Push(make([]byte, 100)) }()
	for range 2 {
		if _, err := q.Pop(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	q.Abort(jsonrpc.ErrClosed)
	held.Give(1 << 20)
	free(t, held, 0)
}

func TestLinesTakeOfTheBudget(t *testing.T) {
	held := budget.New(1<<20, nil)
	s := NewSplitter(1<<30, held)
	next := func(n int, end string) error {
		line, _, err := s.Next(append(bytes.Repeat([]byte("x"), n), end...))
		if err == nil && (line == nil) != (end == "") {
			t.Errorf("%d bytes with %q gave a line of %d", n, end, len(line))
		}
		return err
	}
	if err := next(500<<10, ""); err != nil {
		t.Fatal(err)
	}
	if held.Take(300<<10, "") {
		t.Error("half a line is not counted")
	}
	if err := next(0, "\n"); err != nil {
		t.Fatal(err)
	}
	if held.Take(300<<10, "") {
		t.Error("the line does not count while it is in use")
	}
	if err := next(10, "\n"); err != nil {
		t.Fatal(err)
	}
	free(t, held, 0)

	held.Force(1 << 20)
	if err := next(budget.Free, "\n"); err != nil {
		t.Errorf("a short line over the budget: %v", err)
	}
	err := next(budget.Free+1, "\n")
	if long, ok := errors.AsType[*jsonrpc.TooLongError](err); !ok || !long.Busy {
		t.Errorf("a long line over the budget: %v", err)
	}
	held.Give(1 << 20)
	if err := next(100<<10, ""); err != nil {
		t.Fatal(err)
	}
	s.Release()
	free(t, held, 0)
}
