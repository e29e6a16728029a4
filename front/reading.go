package front

import (
	"net/http"
	"sync"
	"time"

	limits "github.com/mcp-sse/mcp-sse/internal/deadline"
)

// reading bounds how long the bodies of POSTs are read, all with one timer. A read
// deadline for each would set and stop a timer of its TCP connection, for a body that
// nearly always has come with its head.
type reading struct {
	timeout time.Duration
	entries sync.Pool // of *limits.Entry[http.ResponseWriter]

	mu   sync.Mutex // guards what follows
	open limits.Set[http.ResponseWriter]
}

func newReading(timeout time.Duration) *reading {
	r := &reading{timeout: timeout}
	r.entries.New = func() any { return &limits.Entry[http.ResponseWriter]{} }
	r.open = limits.NewSet[http.ResponseWriter](r.expire)
	return r
}

// begin bounds the reads of a request's body from now on. The caller must call end
// before its handler returns.
func (r *reading) begin(w http.ResponseWriter) *limits.Entry[http.ResponseWriter] {
	e := r.entries.Get().(*limits.Entry[http.ResponseWriter])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open.Put(e, w, r.open.Now()+r.timeout)
	return e
}

func (r *reading) end(e *limits.Entry[http.ResponseWriter]) {
	r.mu.Lock()
	r.open.Drop(e)
	e.Owner = nil
	r.mu.Unlock()
	r.entries.Put(e)
}

// expire makes the reads return whose time is up. It holds the lock, so that no
// ResponseWriter serves another request by then.
func (r *reading) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.open.Due() {
		// Not every ResponseWriter has deadlines; without one the server's own count.
		_ = http.NewResponseController(e.Owner).SetReadDeadline(past)
	}
}
