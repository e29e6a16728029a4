// Package deadline runs many deadlines on one timer: a timer for each request would
// cost more than all else that is done for the request.
package deadline

import "time"

// Entry is the one deadline of an owner. The zero Entry is in no Set.
type Entry[O any] struct {
	// Owner has the deadline.
	Owner O

	at    time.Duration // since Set.epoch
	index int           // in the heap, from 1; 0: not there
}

// Set is a set of deadlines. It has no lock: its user must guard all methods but
// Now. The set does not stop the timer when the last deadline goes; the timer then
// fires once in vain.
type Set[O any] struct {
	epoch time.Time
	fire  func()
	heap  []*Entry[O] // the first element expires first
	timer *time.Timer
	armed time.Duration // when the timer fires; 0: it does not
}

// NewSet returns an empty set that calls fire, in a goroutine of its own, when a
// deadline may have passed. fire must call Due.
func NewSet[O any](fire func()) Set[O] { return Set[O]{epoch: time.Now(), fire: fire} }

// Now returns the time since the set was made. It needs no lock.
func (d *Set[O]) Now() time.Duration { return time.Since(d.epoch) }

// Put sets or moves the deadline of an entry. at is a time of Now.
func (d *Set[O]) Put(t *Entry[O], owner O, at time.Duration) {
	t.at, t.Owner = at, owner
	if t.index == 0 {
		d.heap = append(d.heap, t)
		t.index = len(d.heap)
	}
	d.up(t.index)
	d.down(t.index)
	d.arm()
}

// arm sets the timer to the first deadline, unless it fires earlier.
func (d *Set[O]) arm() {
	if len(d.heap) == 0 || d.armed != 0 && d.armed <= d.heap[0].at {
		return
	}
	d.armed = max(1, d.heap[0].at)
	wait := max(0, d.armed-d.Now())
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, d.fire)
		return
	}
	d.timer.Reset(wait)
}

// Due removes and returns the entries whose deadlines have passed.
func (d *Set[O]) Due() (due []*Entry[O]) {
	d.armed = 0
	now := d.Now()
	for len(d.heap) > 0 && d.heap[0].at <= now {
		t := d.heap[0]
		d.Drop(t)
		due = append(due, t)
	}
	if len(d.heap) == 0 {
		d.timer = nil
	}
	d.arm()
	return due
}

// Drop removes a deadline from the set.
func (d *Set[O]) Drop(t *Entry[O]) {
	at, last := t.index, len(d.heap)
	if at == 0 {
		return
	}
	d.swap(at, last)
	d.heap[last-1] = nil
	d.heap = d.heap[:last-1]
	t.index = 0
	if at < last {
		d.up(at)
		d.down(at)
	}
	if last == 1 && cap(d.heap) > 64 {
		d.heap = nil // idle sessions stay small
	}
}

// Clear removes all deadlines and stops the timer.
func (d *Set[O]) Clear() {
	for _, t := range d.heap {
		t.index = 0
	}
	d.heap = nil
	if d.timer != nil {
		d.timer.Stop()
		d.timer, d.armed = nil, 0
	}
}

// up and down restore the order of the heap around the element at index i, from 1.
func (d *Set[O]) up(i int) {
	for ; i > 1 && d.heap[i-1].at < d.heap[i/2-1].at; i /= 2 {
		d.swap(i, i/2)
	}
}

func (d *Set[O]) down(i int) {
	for n := len(d.heap); 2*i <= n; {
		child := 2 * i
		if child < n && d.heap[child].at < d.heap[child-1].at {
			child++
		}
		if d.heap[i-1].at <= d.heap[child-1].at {
			return
		}
		d.swap(i, child)
		i = child
	}
}

func (d *Set[O]) swap(i, j int) {
	h := d.heap
	h[i-1], h[j-1] = h[j-1], h[i-1]
	h[i-1].index, h[j-1].index = i, j
}
