package exchange

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
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
)

// Poster posts messages one after the other.
type Poster struct {
	// Queue holds the messages to post, at most 8 MiB. Its end ends Run.
	Queue *buffer.Queue
	post  func(ctx context.Context, msg []byte)
	done  chan struct{} // closed when Run returns
}

// NewPoster returns a poster that calls post for each message, with a context of
// 30 s. The caller must call Run.
func NewPoster(post func(ctx context.Context, msg []byte)) *Poster {
	return &Poster{Queue: buffer.NewQueue(buffer.SendLimit), post: post, done: make(chan struct{})}
}

// Run posts the queued messages until the queue is closed and empty, or ctx ends. A
// post that takes over a second runs beside the next ones. Run returns after all
// posts.
func (p *Poster) Run(ctx context.Context) {
	defer close(p.done)
	var posts sync.WaitGroup
	defer posts.Wait()
	room := make(chan struct{}, maxPosts)
	for {
		msg, err := p.Queue.Pop()
		if err != nil || ctx.Err() != nil {
			return
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		done := make(chan struct{})
		posts.Go(func() {
			defer func() { <-room }()
			defer close(done)
			ctx, cancel := context.WithTimeout(ctx, postTimeout)
			defer cancel()
			p.post(ctx, msg)
		})
		awaitTurn(ctx, msg, done)
	}
}

// awaitTurn waits until a post is done. It waits at most postTurn, unless the message
// opens the session.
func awaitTurn(ctx context.Context, msg []byte, done <-chan struct{}) {
	var limit <-chan time.Time
	if m, err := jsonrpc.Parse(msg); err != nil || m.Method != mcp.MethodInitialize && m.Method != mcp.MethodInitialized {
		limit = time.After(postTurn)
	}
	select {
	case <-done:
	case <-limit:
	case <-ctx.Done():
	}
}

// Drained waits until Run has returned, or ctx ends. The caller must have closed the
// queue.
func (p *Poster) Drained(ctx context.Context) {
	select {
	case <-p.done:
	case <-ctx.Done():
	}
}
