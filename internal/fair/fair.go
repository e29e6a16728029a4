// Package fair hands out a bounded number of places, so that a caller who wants many
// does not keep the others waiting.
package fair

import (
	"context"
	"slices"
	"sync"
)

// Places is a bounded number of places. Callers that wait get them in rounds: each
// party one place a round, in the order in which its callers came. Places is safe for
// concurrent use. A nil *Places has no bound.
type Places struct {
	mu      sync.Mutex // guards what follows
	free    int        // 0 while anybody waits
	round   int        // of the last caller that waited and got a place
	waiting []*waiter  // by round, then by arrival
}

type waiter struct {
	party string
	round int
	place chan struct{} // closed when the caller gets its place
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
	w := p.waitLocked(party)
	p.mu.Unlock()
	select {
	case <-w.place:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	} else {
		p.giveLocked() // it has just got the place
	}
	return ctx.Err()
}

func (p *Places) waitLocked(party string) *waiter {
	w := &waiter{party, p.round, make(chan struct{})}
	for _, other := range p.waiting {
		if other.party == party {
			w.round = other.round + 1
		}
	}
	i := slices.IndexFunc(p.waiting, func(other *waiter) bool { return other.round > w.round })
	if i < 0 {
		i = len(p.waiting)
	}
	p.waiting = slices.Insert(p.waiting, i, w)
	return w
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
	if len(p.waiting) == 0 {
		p.free++
		return
	}
	next := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	p.round = next.round
	close(next.place)
}
