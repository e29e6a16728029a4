package multiplex

import "time"

// timed is embedded in what has a deadline. Guarded by Session.mu.
type timed struct {
	at    time.Duration // since deadlines.epoch
	index int           // in the heap, from 1; 0: not there
	owner expiring
}

// expiring is something with a deadline. The session calls expireLocked when the
// deadline has passed, and the function that it returns once it has released the
// lock; nil: there is nothing to do.
type expiring interface{ expireLocked(s *Session) func() }

// deadlines are those of one session, behind one timer: a timer for each request
// would cost more than everything else that is done for it. The timer is not stopped
// when the last deadline goes; it then fires once, for nothing. Guarded by Session.mu.
type deadlines struct {
	epoch time.Time // instants of the session are counted from here
	fire  func()    // called by the timer, without the lock
	heap  []*timed  // the first element expires first
	timer *time.Timer
	armed time.Duration // when the timer fires; 0: it does not
}

// now is the time since the session began. It needs no lock.
func (d *deadlines) now() time.Duration { return time.Since(d.epoch) }

// set sets when t, which is part of owner, expires, or moves that.
func (d *deadlines) set(t *timed, owner expiring, at time.Duration) {
	t.at, t.owner = at, owner
	if t.index == 0 {
		d.heap = append(d.heap, t)
		t.index = len(d.heap)
	}
	d.up(t.index)
	d.down(t.index)
	d.arm()
}

// arm sets the timer to the first deadline, unless it fires earlier.
func (d *deadlines) arm() {
	if len(d.heap) == 0 || d.armed != 0 && d.armed <= d.heap[0].at {
		return
	}
	d.armed = max(1, d.heap[0].at)
	wait := max(0, d.armed-d.now())
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, d.fire)
		return
	}
	d.timer.Reset(wait)
}

// due removes and returns everything whose deadline has passed. The timer calls
// for it.
func (d *deadlines) due() (due []*timed) {
	d.armed = 0
	now := d.now()
	for len(d.heap) > 0 && d.heap[0].at <= now {
		t := d.heap[0]
		d.drop(t)
		due = append(due, t)
	}
	if len(d.heap) == 0 {
		d.timer = nil
	}
	d.arm()
	return due
}

// drop forgets a deadline.
func (d *deadlines) drop(t *timed) {
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

// clear forgets all deadlines.
func (d *deadlines) clear() {
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
func (d *deadlines) up(i int) {
	for ; i > 1 && d.heap[i-1].at < d.heap[i/2-1].at; i /= 2 {
		d.swap(i, i/2)
	}
}

func (d *deadlines) down(i int) {
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

func (d *deadlines) swap(i, j int) {
	h := d.heap
	h[i-1], h[j-1] = h[j-1], h[i-1]
	h[i-1].index, h[j-1].index = i, j
}
