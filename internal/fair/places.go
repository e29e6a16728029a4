// Package fair hands out a bounded number of places, so that a caller who wants many
// does not keep the others waiting.
package fair

import (
	"context"
	"slices"
	"sync"
)

// Places is a bounded number of places. While callers wait, each party gets one place
// in turn; the callers of one party get theirs in the order in which they came. It is
// safe for concurrent use.
type Places struct {
	unlimited bool

	mu     sync.Mutex // guards what follows
	free   int        // 0 while anybody waits
	lines  map[string]*line
	inTurn []*line // those with callers; the first gets the next place
}

// line holds the callers of one party that wait, oldest first. A channel is closed
// when its caller gets a place.
type line struct {
	party   string
	waiting []chan struct{}
}

// NewPlaces returns n free places; without a bound if n is below 1.
func NewPlaces(n int) *Places {
	return &Places{unlimited: n < 1, free: n, lines: make(map[string]*line)}
}

// TryTake takes a place if one is free.
func (p *Places) TryTake() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeLocked()
}

func (p *Places) takeLocked() bool {
	if p.unlimited {
		return true
	}
	if p.free == 0 {
		return false
	}
	p.free--
	return true
}

// Take takes a place, for which it may wait. It fails with ctx.
func (p *Places) Take(ctx context.Context, party string) error {
	place := p.enter(party)
	if place == nil {
		return nil
	}
	select {
	case <-place:
		return nil
	case <-ctx.Done():
		if !p.leave(party, place) {
			p.Give() // it has just got the place
		}
		return ctx.Err()
	}
}

// enter takes a place and returns nil, or else lets the caller wait.
func (p *Places) enter(party string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.takeLocked() {
		return nil
	}
	l := p.lines[party]
	if l == nil {
		l = &line{party: party}
		p.lines[party] = l
		p.inTurn = append(p.inTurn, l)
	}
	place := make(chan struct{})
	l.waiting = append(l.waiting, place)
	return place
}

// leave removes a caller that waits. It reports false if the caller has got its place.
func (p *Places) leave(party string, place chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lines[party]
	if l == nil {
		return false
	}
	i := slices.Index(l.waiting, place)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	if len(l.waiting) == 0 {
		delete(p.lines, party)
		p.inTurn = slices.DeleteFunc(p.inTurn, func(other *line) bool { return other == l })
	}
	return true
}

// Give returns a place. It goes to the party whose turn it is.
func (p *Places) Give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.unlimited:
		return
	case len(p.inTurn) == 0:
		p.free++
		return
	}
	l := p.inTurn[0]
	p.inTurn = slices.Delete(p.inTurn, 0, 1)
	close(l.waiting[0])
	l.waiting = slices.Delete(l.waiting, 0, 1)
	if len(l.waiting) > 0 {
		p.inTurn = append(p.inTurn, l)
		return
	}
	delete(p.lines, l.party)
}
