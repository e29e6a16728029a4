package statuspage

import (
	"context"
	"sync"
	"time"
)

// Counts are what a server has done: handshakes, requests and errors.
type Counts [3]int

// kinds are the names of Counts.
var kinds = [len(Counts{})]string{"handshakes", "requests", "errors"}

// Hour is the counts of each minute of the last hour. The last is the current minute.
type Hour [60]Counts

// History keeps the counts of a server for an hour. It is safe for concurrent use.
type History struct {
	read func() Counts

	mu     sync.Mutex // guards what follows
	hour   Hour
	before Counts // at the begin of the current minute
}

// NewHistory returns a History of what read returns, which only grows.
func NewHistory(read func() Counts) *History { return &History{read: read, before: read()} }

// Run begins another minute every minute, until ctx ends.
func (h *History) Run(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.update(true)
		case <-ctx.Done():
			return
		}
	}
}

// Hour returns the counts up to now.
func (h *History) Hour() Hour { return h.update(false) }

// update returns the counts up to now, and then begins another minute if it is to turn.
func (h *History) update(turn bool) Hour {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, last := h.read(), len(h.hour)-1
	for kind := range now {
		h.hour[last][kind] = now[kind] - h.before[kind]
	}
	hour := h.hour
	if turn {
		copy(h.hour[:], h.hour[1:])
		h.hour[last], h.before = Counts{}, now
	}
	return hour
}
