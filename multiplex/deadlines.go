package multiplex

import "time"

// timed is part of what has a deadline. Guarded by Session.mu.
type timed struct {
	at    time.Duration // since Session.epoch
	index int           // in the heap, from 1; 0: not there
	owner expiring
}

// expiring is something with a deadline. expire is called without a lock; by then
// it may have been given another deadline, or be over.
type expiring interface{ expire(s *Session) }

// deadlines are those of one session, behind one timer: a timer for each request
// would cost more than all else that is done for it. The timer is not stopped when
// the last deadline goes; it then fires once, for nothing. Guarded by Session.mu.
type deadlines struct {
	heap  []*timed // what expires first is its first element
	timer *time.Timer
	armed time.Duration // when the timer fires; 0: it does not
}

// deadlineLocked sets when t, which is part of owner, expires, or moves that.
func (s *Session) deadlineLocked(t *timed, owner expiring, at time.Duration) {
	d := &s.deadlines
	t.at, t.owner = at, owner
	if t.index == 0 {
		d.heap = append(d.heap, t)
		t.index = len(d.heap)
	}
	d.up(t.index)
	d.down(t.index)
	s.armLocked()
}

// armLocked has the timer fire at the first deadline, or earlier.
func (s *Session) armLocked() {
	d := &s.deadlines
	if len(d.heap) == 0 || d.armed != 0 && d.armed <= d.heap[0].at {
		return
	}
	d.armed = max(1, d.heap[0].at)
	wait := max(0, d.armed-s.now())
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, s.tick)
		return
	}
	d.timer.Reset(wait)
}

// tick has all expire that is due.
func (s *Session) tick() {
	s.mu.Lock()
	d := &s.deadlines
	d.armed = 0
	now := s.now()
	var due []*timed
	for len(d.heap) > 0 && d.heap[0].at <= now {
		t := d.heap[0]
		d.drop(t)
		due = append(due, t)
	}
	if len(d.heap) == 0 {
		d.timer = nil
	}
	s.armLocked()
	s.mu.Unlock()
	for _, t := range due {
		t.owner.expire(s)
	}
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

// clear forgets all of them.
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

// up and down bring the element at an index, from 1, to its place.
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

// now is the time since the session began.
func (s *Session) now() time.Duration { return time.Since(s.epoch) }
