package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// call is one request in work, and the context of its function. A list of them
// suffices: a cancellation is rare, so it may search, and an idle session needs no map.
type call struct {
	conn       *handleConn
	id         jsonrpc.ID
	msg        []byte          // nil when the call is over: the function may keep its context
	base       context.Context // the session's, with the values of the HTTP request
	waiter     jsonrpc.Waiter  // runs the call; nil: a worker does
	prev, next *call           // guarded by conn.mu

	mu    sync.Mutex // guards what follows
	inner context.Context
	end   context.CancelFunc // of inner
	over  bool
}

var _ context.Context = (*call)(nil)

// Run runs the call, for its waiter.
func (k *call) Run() { k.conn.run(k) }

// Deadline returns none: multiplex bounds the request.
func (k *call) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done returns a channel that is closed when the call is cancelled or over, or the
// session closed. The first Done makes a context for it. Most functions never ask, and
// that context is a tenth of all that a session allocates for a call.
func (k *call) Done() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inner == nil {
		k.inner, k.end = context.WithCancel(k.base)
		if k.over {
			k.end()
		}
	}
	return k.inner.Done()
}

// Err returns context.Canceled once Done is closed, or would be.
func (k *call) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.inner != nil:
		return k.inner.Err()
	case k.over:
		return context.Canceled
	}
	return k.base.Err()
}

// Value returns what the session's context and the HTTP request have. Contexts that
// derive from this one find its inner one here, and need no goroutine to learn of its
// end.
func (k *call) Value(key any) any {
	k.mu.Lock()
	inner := k.inner
	k.mu.Unlock()
	if inner != nil {
		return inner.Value(key)
	}
	return k.base.Value(key)
}

// cancel ends the context. It is idempotent.
func (k *call) cancel() {
	k.mu.Lock()
	k.over = true
	end := k.end
	k.mu.Unlock()
	if end != nil {
		end()
	}
}
