package exchange

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// postTimeout bounds a POST that gets no message as its response.
	postTimeout = 30 * time.Second
	// postTurn is how long the next message waits for the one before it. A server may
	// answer a POST only after it has handled the message, and may need the next
	// message for that.
	postTurn = time.Second
	// maxPosts bounds the posts that still run although later ones have begun.
	maxPosts = 64
	// maxCancels bounds the cancellations that are posted at a time, waitingCancels
	// those and the ones that wait, and maxCancelBytes the length of each.
	maxCancels     = 8
	waitingCancels = 1024
	maxCancelBytes = 4 << 10
	// cancelTimeout bounds the wait and the POST of a cancellation together. The server
	// may go on with the work, whose answer nobody awaits.
	cancelTimeout = 5 * time.Second
)

// Poster posts messages one after the other, and cancellations beside them.
type Poster struct {
	// Queue holds the messages to post, at most 8 MiB. Its end ends Run.
	Queue *buffer.Queue
	x     *Endpoint
	post  func(ctx context.Context, m *jsonrpc.Message)
	posts sync.WaitGroup
	done  chan struct{} // closed when Run returns

	room    *semaphore.Weighted // for maxPosts posts
	cancels *semaphore.Weighted // for maxCancels posts of cancellations
	waiting *semaphore.Weighted // for waitingCancels of those and those that wait
}

// NewPoster returns a poster that calls post for each message. Its context has 30 s,
// that of a cancellation 5 s. The poster counts what it drops at x. The caller must
// call Run.
func NewPoster(x *Endpoint, post func(ctx context.Context, m *jsonrpc.Message)) *Poster {
	return &Poster{
		Queue: buffer.NewQueue(buffer.SendLimit), x: x, post: post, done: make(chan struct{}),
		room: semaphore.NewWeighted(maxPosts), cancels: semaphore.NewWeighted(maxCancels),
		waiting: semaphore.NewWeighted(waitingCancels),
	}
}

// Run posts the queued messages until the queue is closed and empty, or ctx ends. A
// post that takes over a second runs beside the next ones. Run returns after all
// posts.
func (p *Poster) Run(ctx context.Context) {
	defer close(p.done)
	defer p.posts.Wait()
	for {
		msg, err := p.Queue.Recv()
		if err != nil || ctx.Err() != nil {
			return
		}
		m, err := jsonrpc.Parse(msg)
		switch {
		case err != nil: // nobody can be answered
		case m.Method == mcp.MethodCancelled:
			p.cancel(ctx, m)
		default:
			p.inTurn(ctx, m)
		}
	}
}

// inTurn posts a message, and waits for the turn of the next one.
func (p *Poster) inTurn(ctx context.Context, m *jsonrpc.Message) {
	if p.room.Acquire(ctx, 1) != nil {
		return
	}
	done := make(chan struct{})
	p.posts.Go(func() {
		defer p.room.Release(1)
		defer close(done)
		ctx, cancel := context.WithTimeout(ctx, postTimeout)
		defer cancel()
		p.post(ctx, m)
	})
	var limit <-chan time.Time // none for a message that opens the session
	if m.Method != mcp.MethodInitialize && m.Method != mcp.MethodInitialized {
		limit = time.After(postTurn)
	}
	select {
	case <-done:
	case <-limit:
	case <-ctx.Done():
	}
}

// cancel posts a cancellation, or drops it if too many wait or the server is too slow.
// It does not wait: nothing that follows depends on a cancellation.
func (p *Poster) cancel(ctx context.Context, m *jsonrpc.Message) {
	if len(m.Raw()) > maxCancelBytes {
		p.x.Undelivered(m, jsonrpc.ErrTooLong)
		return
	}
	if !p.waiting.TryAcquire(1) {
		p.x.Undelivered(m, jsonrpc.ErrBusy)
		return
	}
	p.posts.Go(func() { // ends after cancelTimeout, or with ctx
		defer p.waiting.Release(1)
		ctx, done := context.WithTimeout(ctx, cancelTimeout)
		defer done()
		if err := p.cancels.Acquire(ctx, 1); err != nil {
			p.x.Undelivered(m, err)
			return
		}
		defer p.cancels.Release(1)
		p.post(ctx, m)
	})
}

// Drained waits until Run has returned, or ctx ends. The caller must have closed the
// queue.
func (p *Poster) Drained(ctx context.Context) {
	select {
	case <-p.done:
	case <-ctx.Done():
	}
}
