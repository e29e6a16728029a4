// Package fair hands out places and turns, so that a caller who wants many does not keep
// the others waiting.
package fair

import (
	"context"
	"sync"
)

// Places is a bounded number of places. Callers that wait get them in rounds, as in a
// Queue. Places is safe for concurrent use. A nil *Places has no bound.
type Places struct {
	mu      sync.Mutex           // guards what follows
	free    int                  // 0 while anybody waits
	waiting Queue[chan struct{}] // closed when the caller gets its place
}

// NewPlaces returns n free places; nil if n is below 1.
func NewPlaces(n int) *Places {
	if n < 1 {
		return nil
	}
	return &Places{free: n}
}

// TryTake takes a place if one is free.
func (p *Places) TryTake() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tryTakeLocked()
}

func (p *Places) tryTakeLocked() bool {
	if p.free == 0 {
		return false
	}
	p.free--
	return true
}

// Take takes a place, for which it may wait. It fails with ctx.
func (p *Places) Take(ctx context.Context, party string) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	if p.tryTakeLocked() {
		p.mu.Unlock()
		return nil
	}
	place := make(chan struct{})
	p.waiting.Add(party, "", place, 0)
	p.mu.Unlock()
	select {
	case <-place:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.waiting.Remove(party, "", place) {
		p.giveLocked() // it has just got the place
	}
	return ctx.Err()
}

// Give returns a place.
func (p *Places) Give() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.giveLocked()
}

func (p *Places) giveLocked() {
	place, ok := p.waiting.Next(func(chan struct{}) bool { return true })
	if !ok {
		p.free++
		return
	}
	close(place)
}
