package buffer

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestQueueKeepsOrder(t *testing.T) {
	q := NewQueue(1 << 20)
	next, want := byte(0), byte(0)
	for round := range 200 {
		for range round%7 + 1 {
			ssetest.Must(t, q.Push([]byte{next}, jsonrpc.NumberID(int64(next))))
			next++
		}
		for range min(round%5+1, len(q.items)) {
			if got, request, err := q.RecvFor(); err != nil || got[0] != want || request != jsonrpc.NumberID(int64(want)) {
				t.Fatalf("got message %d of %s, %v, want %d", got[0], request, err, want)
			}
			want++
		}
		if q.bytes != len(q.items)*(1+budget.ItemCost) {
			t.Fatalf("%d bytes counted for %d messages", q.bytes, len(q.items))
		}
	}
}

// A full queue refuses Offer and delays Push, until there is room. Any message fits alone.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(3 * (100 + budget.ItemCost))
		message := []byte(strings.Repeat("x", 100))
		for range 3 {
			ssetest.Must(t, q.Offer(message))
		}
		ssetest.WantError(t, "Offer to a full queue", q.Offer(message), jsonrpc.ErrBusy)
		pushed := make(chan error, 1)
		go func() { pushed <- q.Push(message, "") }()
		synctest.Wait()
		if len(pushed) > 0 {
			t.Error("Push did not wait for room")
		}
		if _, ok := q.Poll(); !ok {
			t.Error("Poll found nothing")
		}
		ssetest.Want(t, "Push", <-pushed, nil)
		for range 3 {
			q.Poll()
		}
		ssetest.Want(t, "a large message alone", q.Offer([]byte(strings.Repeat("x", 1<<10))), nil)
	})
}

func TestQueueEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1 << 10)
		_ = q.Offer([]byte("a"))
		q.End(io.EOF)
		q.End(io.ErrUnexpectedEOF)
		ssetest.WantError(t, "Offer after End", q.Offer([]byte("b")), io.EOF)
		if got, _, err := q.RecvFor(); string(got) != "a" {
			t.Errorf("Pop after End: %s, %v", got, err)
		}
		if _, _, err := q.RecvFor(); err != io.EOF {
			t.Errorf("Pop of an empty queue after End: %v", err)
		}
		q = NewQueue(1)
		_ = q.Offer([]byte("a"))
		ended := make(chan error, 2)
		go func() { ended <- q.Push([]byte("b"), "") }()
		synctest.Wait()
		q.Abort(jsonrpc.ErrClosed)
		ssetest.WantError(t, "Push during Abort", <-ended, jsonrpc.ErrClosed)
		if got, _, err := q.RecvFor(); err != jsonrpc.ErrClosed {
			t.Errorf("Pop after Abort: %s, %v", got, err)
		}
	})
}
