package upstream

import (
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/stack"
)

// maxIdleWorkers bounds the goroutines that wait for a call.
const maxIdleWorkers = 64

// workers are goroutines that run the calls of several sessions. After a call they wait
// for another one, with the stack that they have grown: to grow one takes longer than
// to wake a goroutine. When no session is open, none waits. The nil *workers runs each
// call in a goroutine of its own.
type workers struct {
	mu       sync.Mutex // guards what follows
	sessions int        // that are open
	// idle holds the channels of the workers that wait, the last used last. Each has
	// room for one call; whoever takes a channel from here sends on it or closes it.
	idle []chan *call
}

// join notes that a session is open, and leave that it is closed.
func (w *workers) join() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions++
}

func (w *workers) leave() {
	if w == nil {
		return
	}
	for _, next := range w.removeSession() {
		close(next)
	}
}

// removeSession is the locked step of leave. It returns the workers to end.
func (w *workers) removeSession() (idle []chan *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sessions--; w.sessions == 0 {
		idle, w.idle = w.idle, nil
	}
	return idle
}

// run runs a call, and does not wait for it.
func (w *workers) run(k *call) {
	if next := w.take(); next != nil {
		next <- k
		return
	}
	go w.work(k) // ends when no call follows
}

// take returns the channel of an idle worker, nil if there is none.
func (w *workers) take() chan *call {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.idle) - 1
	if last < 0 {
		return nil
	}
	next := w.idle[last]
	w.idle = w.idle[:last]
	return next
}

// work runs a call, and those that follow. A function that ends its goroutine
// (runtime.Goexit) ends the worker.
func (w *workers) work(k *call) {
	stack.Grow()
	if w == nil {
		k.conn.run(k)
		return
	}
	for next := make(chan *call, 1); k != nil; k = <-next {
		k.conn.run(k)
		if !w.wait(next) {
			return
		}
	}
}

// wait makes a worker idle. It reports false if the worker is not needed.
func (w *workers) wait(next chan *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sessions == 0 || len(w.idle) >= maxIdleWorkers {
		return false
	}
	w.idle = append(w.idle, next)
	return true
}
