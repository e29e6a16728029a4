package connstate

import (
	"slices"
	"sync"
	"time"
)

// Event is one server-sent event on its way to the client. Data is one line;
// an event without Data is a comment line that holds Name.
type Event struct {
	Name string
	Data []byte
	// Retry, when positive, tells the client how long to wait before it
	// reconnects, in milliseconds.
	Retry int
}

// maxWaiting and maxWaitingBytes bound the sendings that wait for room at a time.
// One that is larger waits alone.
const (
	maxWaiting      = 1024
	maxWaitingBytes = 16 << 20
)

// eventOverhead is what an event weighs beside its data.
const eventOverhead = 64

// Size is what the event counts for in an outbox, in bytes.
func (e Event) Size() int { return len(e.Data) + eventOverhead }

// outbox holds the events that wait to be written to one client, bounded in
// bytes. Pushers fill it; the stream takes events through the sink and says
// when they were written. An event counts until then. Senders that find no room
// wait in a queue, and enter in its order.
type outbox struct {
	limit int

	mu      sync.Mutex
	sink    func(Event) bool // takes an event if it has room; must not block
	queue   []Event          // queue[head:] has not been taken yet
	head    int
	bytes   int           // queued and taken, not yet written
	wrote   int           // written, ever
	waiters []*waiter     // the line; empty when the outbox is
	waiting int           // bytes of the line
	room    chan struct{} // closed when something has been written, or at the end
	closed  bool
}

// waiter is a place in the line in front of an outbox.
type waiter struct {
	events []Event
	size   int
	done   chan struct{} // closed when the events have entered, or never will
	err    error         // why not; set before done is closed
}

func newOutbox(limit int) *outbox {
	return &outbox{limit: limit}
}

// push adds an event if there is room for it now, and reports ErrSlow if not.
func (o *outbox) push(e Event) error {
	_, err := o.pushMarked(e)
	return err
}

// pushMarked is push, and returns a mark for hasWritten.
func (o *outbox) pushMarked(e Event) (mark int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return 0, ErrClosed
	case len(o.waiters) > 0 || !o.fitsLocked(e.Size()):
		return 0, ErrSlow
	}
	mark = o.wrote + o.bytes + e.Size()
	o.addLocked(e.Size(), e)
	return mark, nil
}

// hasWritten reports whether the event with that mark has been written.
func (o *outbox) hasWritten(mark int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wrote >= mark
}

// enter adds events that stay together, or gives them a place in the line, for
// which the caller calls await. It reports ErrSlow when the line is too long.
func (o *outbox) enter(events []Event) (*waiter, error) {
	size := 0
	for _, e := range events {
		size += e.Size()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return nil, ErrClosed
	case len(o.waiters) == 0 && o.fitsLocked(size):
		o.addLocked(size, events...)
		return nil, nil
	case len(o.waiters) >= maxWaiting || o.waiting > 0 && o.waiting+size > maxWaitingBytes:
		return nil, ErrSlow
	}
	w := &waiter{events: slices.Clone(events), size: size, done: make(chan struct{})}
	o.waiters = append(o.waiters, w)
	o.waiting += size
	return w, nil
}

// await waits until the events have entered. When nothing has been written for
// the time wait, it takes them out of the line and reports ErrSlow: the client is
// to be closed for it, so no other sender gets their place. lastWrite returns when
// something was last written.
func (o *outbox) await(w *waiter, wait time.Duration, lastWrite func() time.Time) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for waited := false; !waited; {
		select {
		case <-w.done:
			return w.err
		case <-timer.C:
			left := wait - time.Since(lastWrite())
			waited = left <= 0
			timer.Reset(max(0, left))
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.Index(o.waiters, w)
	if i < 0 { // they entered at the last moment
		return w.err
	}
	o.waiters = slices.Delete(o.waiters, i, i+1)
	o.waiting -= w.size
	return ErrSlow
}

// fitsLocked: an empty outbox takes anything.
func (o *outbox) fitsLocked(size int) bool { return o.bytes == 0 || o.bytes+size <= o.limit }

func (o *outbox) addLocked(size int, events ...Event) {
	o.bytes += size
	o.queue = append(o.queue, events...)
	o.pumpLocked()
}

// admitLocked moves waiting events into the outbox, oldest first, while there is room.
func (o *outbox) admitLocked() {
	for len(o.waiters) > 0 && o.fitsLocked(o.waiters[0].size) {
		w := o.waiters[0]
		o.waiters[0] = nil
		o.waiters = o.waiters[1:]
		o.waiting -= w.size
		o.addLocked(w.size, w.events...)
		close(w.done)
	}
}

// pumpLocked hands events to the sink until it has no more room.
func (o *outbox) pumpLocked() {
	if o.sink == nil {
		return
	}
	for o.head < len(o.queue) && o.sink(o.queue[o.head]) {
		o.queue[o.head] = Event{}
		o.head++
	}
	switch {
	case o.head == len(o.queue):
		o.queue, o.head = o.queue[:0], 0
		if cap(o.queue) > 64 {
			o.queue = nil
		}
	case o.head > 64 && o.head*2 > len(o.queue):
		o.queue = append([]Event(nil), o.queue[o.head:]...)
		o.head = 0
	}
}

// attach gives the outbox the stream that takes its events.
func (o *outbox) attach(sink func(Event) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sink = sink
	o.pumpLocked()
}

// written says that a taken event of that size left, and offers the next ones.
func (o *outbox) written(size int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes -= size
	o.wrote += size
	if !o.closed {
		o.pumpLocked()
		o.admitLocked()
	}
	o.wakeLocked()
}

func (o *outbox) roomLocked() <-chan struct{} {
	if o.room == nil {
		o.room = make(chan struct{})
	}
	return o.room
}

func (o *outbox) wakeLocked() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// pending is the number of bytes that are not written yet.
func (o *outbox) pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes
}

// close drops the events that were not taken and fails all that wait.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.sink, o.queue, o.head = nil, nil, 0
	for _, w := range o.waiters {
		w.err = ErrClosed
		close(w.done)
	}
	o.waiters, o.waiting = nil, 0
	o.wakeLocked()
}

// flushed returns once all is written, or after the wait, and reports which.
func (o *outbox) flushed(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	o.mu.Lock()
	target := o.wrote + o.bytes
	for _, w := range o.waiters {
		target += w.size
	}
	o.mu.Unlock()
	for {
		o.mu.Lock()
		if o.wrote >= target || o.closed {
			done := o.wrote >= target
			o.mu.Unlock()
			return done
		}
		room := o.roomLocked()
		o.mu.Unlock()
		select {
		case <-room:
		case <-timer.C:
			return false
		}
	}
}
