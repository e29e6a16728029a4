package statuspage

import (
	"context"
	"sync"
	"time"
)

// Counts are what a server has done.
type Counts struct{ Handshakes, Requests, Errors int }

// minutes is how many minutes a History keeps.
const minutes = 60

// Hour is the counts of each minute of the last hour. The last is the current minute.
type Hour [minutes]Counts

// add adds the counts of another server.
func (h *Hour) add(other Hour) {
	for i, c := range other {
		h[i] = Counts{h[i].Handshakes + c.Handshakes, h[i].Requests + c.Requests, h[i].Errors + c.Errors}
	}
}

// History keeps the counts of a server for an hour. It is safe for concurrent use.
type History struct {
	read func() Counts

	mu    sync.Mutex // guards what follows
	hour  Hour       // the last minute is added when it is asked for
	since Counts     // at the begin of the current minute
}

// NewHistory returns a History of what read returns, which only grows.
func NewHistory(read func() Counts) *History { return &History{read: read, since: read()} }

// Run begins another minute every minute, until ctx ends.
func (h *History) Run(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.turn()
		case <-ctx.Done():
			return
		}
	}
}

// turn ends the current minute.
func (h *History) turn() {
	now := h.read()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hour[minutes-1] = now.minus(h.since)
	copy(h.hour[:], h.hour[1:])
	h.hour[minutes-1], h.since = Counts{}, now
}

// Hour returns the counts up to now.
func (h *History) Hour() Hour {
	now := h.read()
	h.mu.Lock()
	defer h.mu.Unlock()
	hour := h.hour
	hour[minutes-1] = now.minus(h.since)
	return hour
}

func (c Counts) minus(before Counts) Counts {
	return Counts{c.Handshakes - before.Handshakes, c.Requests - before.Requests, c.Errors - before.Errors}
}
