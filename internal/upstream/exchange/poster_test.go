package exchange

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// posts runs a poster in fake time until the end of the test, and returns a function
// that sends messages.
func posts(t *testing.T, x *Endpoint, post func(ctx context.Context, m *jsonrpc.Message)) (send func(format string, args ...any)) {
	p := NewPoster(x, post)
	go p.Run(t.Context()) // ends with the queue
	t.Cleanup(func() { p.Queue.End(jsonrpc.ErrClosed) })
	return func(format string, args ...any) {
		ssetest.Must(t, p.Queue.Offer(fmt.Appendf(nil, format, args...)))
	}
}

// A server that answers a POST only when it has had the next message must not hang the
// session.
func TestMessagesArePostedInOrderAndWaitASecondForTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 10)
		slow := make(chan struct{})
		send := posts(t, testEndpoint(""), func(_ context.Context, m *jsonrpc.Message) {
			got <- m.Method
			switch m.Method {
			case "b":
				<-slow
			case "initialize":
				time.Sleep(2 * postTurn)
				got <- "initialized"
			}
		})
		for _, method := range []string{"a", "b", "c", "initialize", "d"} {
			send(`{"jsonrpc":"2.0","method":%q}`, method)
		}
		synctest.Wait()
		ssetest.Want(t, "messages that are posted at once", len(got), 2)
		for _, want := range []string{"a", "b", "c", "initialize", "initialized", "d"} {
			ssetest.Want(t, "posted", <-got, want)
		}
		close(slow)
	})
}

// A server that is slow to take cancellations delays nothing else, and holds few
// connections for them. Cancellations that it does not take in time are dropped and counted.
func TestSlowCancellationsDelayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 500
		reg := metrics.NewRegistry()
		x := testEndpoint("")
		x.Metrics = metrics.New(reg)
		cancels, others := make(chan struct{}, n), make(chan struct{}, n)
		send := posts(t, x, func(ctx context.Context, m *jsonrpc.Message) {
			if m.Method != "notifications/cancelled" {
				others <- struct{}{}
				return
			}
			cancels <- struct{}{}
			<-ctx.Done()
			<-cancels
			x.Undelivered(m, ctx.Err())
		})
		for id := range n {
			send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
		}
		send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		synctest.Wait()
		if len(others) != 1 || len(cancels) != maxCancels {
			t.Errorf("%d other messages and %d cancellations are posted, want 1 and %d", len(others), len(cancels), maxCancels)
		}
		time.Sleep(cancelTimeout)
		synctest.Wait()
		ssetest.Want(t, "cancellations that are on their way", len(cancels), 0)
		ssetest.Want(t, "cancellations that count as undelivered", ssetest.Sum(t, reg, "mcp_sse_messages_dropped_total"), n)
	})
}
