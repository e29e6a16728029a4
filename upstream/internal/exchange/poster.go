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
	// postTurn is how long the next message waits for the one before it. A server
	// may answer a POST only when it has dealt with the message, and that may need
	// the next one.
	postTurn = time.Second
	// maxPosts bounds the posts that have lost their turn.
	maxPosts = 64
)

// Poster posts messages one after the other.
type Poster struct {
	Queue *buffer.Queue
	post  func(ctx context.Context, msg []byte)
	done  chan struct{} // closed when the queue is at its end
}

// NewPoster returns a poster that calls post for each message; the caller must call Run.
func NewPoster(post func(ctx context.Context, msg []byte)) *Poster {
	return &Poster{Queue: buffer.NewQueue(buffer.SendLimit), post: post, done: make(chan struct{})}
}

// Run posts what is in the queue, until that is closed and empty, or ctx ends. It
// returns when all posts have.
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
		p.turn(ctx, msg, done)
	}
}

// turn waits until a post has been answered; not for long, unless it opens the
// session.
func (p *Poster) turn(ctx context.Context, msg []byte, done <-chan struct{}) {
	var limit <-chan time.Time
	if m, err := jsonrpc.Parse(msg); err != nil || m.Method != mcp.MethodInitialize && m.Method != mcp.MethodInitialized {
		timer := time.NewTimer(postTurn)
		defer timer.Stop()
		limit = timer.C
	}
	select {
	case <-done:
	case <-limit:
	case <-ctx.Done():
	}
}

// Drained waits until all is posted, or ctx ends. The queue must be closed.
func (p *Poster) Drained(ctx context.Context) {
	select {
	case <-p.done:
	case <-ctx.Done():
	}
}
