package exchange

import (
	"context"
	"sync"
	"time"
)

// aliveTimeout bounds a Question. A server that answers later is alive all the same.
const aliveTimeout = 5 * time.Second

// Question asks the server of a session whether it is still there, once for all who
// want to know at the same time. The zero value is ready, and safe for concurrent
// use.
type Question struct {
	mu    sync.Mutex
	asked chan struct{} // closed after the answer; nil: nobody is asking
}

// Settle returns after ask has returned; a caller that only waits also when ctx ends. The first caller runs ask;
// later callers wait for it. ask gets a context that ends with session,
// and after 5 s. It must end the session if the server is gone.
func (q *Question) Settle(ctx, session context.Context, ask func(context.Context)) {
	q.mu.Lock()
	asked := q.asked
	if asked != nil {
		q.mu.Unlock()
		select {
		case <-asked:
		case <-ctx.Done():
		}
		return
	}
	asked = make(chan struct{})
	q.asked = asked
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		q.asked = nil
		q.mu.Unlock()
		close(asked)
	}()
	limited, cancel := context.WithTimeout(session, aliveTimeout)
	defer cancel()
	ask(limited)
}
