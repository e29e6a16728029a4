// Package fair hands out places and turns, so that a caller who wants many does not keep
// the others waiting.
package fair

import (
	"context"
	"sync"
)

// Places is a number of places. Callers that wait get them in rounds, as in a Queue. Places
// is safe for concurrent use.
type Places struct {
	mu      sync.Mutex           // guards what follows
	all     int                  // below 1: there is no bound
	taken   int                  // may exceed all after Resize
	waiting Queue[chan struct{}] // closed when the caller gets its place
}

// NewPlaces returns n free places; without a bound if n is below 1.
func NewPlaces(n int) *Places { return &Places{all: n} }

// Resize makes it n places. Callers that have one keep it.
func (p *Places) Resize(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = n
	p.fillLocked()
}

// TryAcquire takes a place if one is free.
func (p *Places) TryAcquire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tryAcquireLocked()
}

func (p *Places) tryAcquireLocked() bool {
	if p.all > 0 && p.taken >= p.all {
		return false
	}
	p.taken++
	return true
}

// Acquire takes a place, for which it may wait. It fails with ctx.
func (p *Places) Acquire(ctx context.Context, party string) error {
	p.mu.Lock()
	if p.tryAcquireLocked() {
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
		p.taken-- // it has just got the place
		p.fillLocked()
	}
	return ctx.Err()
}

// Free reports whether nobody has a place.
func (p *Places) Free() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken == 0
}

// Release returns a place.
func (p *Places) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	p.fillLocked()
}

// fillLocked gives the free places to callers that wait.
func (p *Places) fillLocked() {
	for p.waiting.Len() > 0 && p.tryAcquireLocked() {
		place, _ := p.waiting.Next(func(chan struct{}) bool { return true })
		close(place)
	}
}
