package connstate

import (
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

// maxWaiting bounds the senders that wait for room at a time.
const maxWaiting = 1024

// eventOverhead is what an event weighs beside its data.
const eventOverhead = 64

// Size is what the event counts for in an outbox, in bytes.
func (e Event) Size() int { return len(e.Data) + eventOverhead }

// outbox holds the events that wait to be written to one client, bounded in
// bytes. Pushers fill it; the stream takes events through the sink and says
// when they were written. What the stream has taken counts until then.
type outbox struct {
	limit int

	mu      sync.Mutex
	sink    func(Event) bool // takes an event if it has room; must not block
	queue   []Event          // queue[head:] has not been taken yet
	head    int
	bytes   int // queued and taken, not yet written
	waiting int // pushers that wait for room; newcomers wait behind them
	room    chan struct{}
	closed  bool

	turn chan struct{} // held by the one pusher that waits for room; made when first needed
}

func newOutbox(limit int) *outbox {
	return &outbox{limit: limit}
}

// push adds events that stay together. It waits at most wait for room and
// reports ErrSlow when there is none; an empty outbox takes anything.
func (o *outbox) push(wait time.Duration, events ...Event) error {
	size := 0
	for _, e := range events {
		size += e.Size()
	}
	o.mu.Lock()
	if done, err := o.tryLocked(o.waiting == 0, size, events); done {
		o.mu.Unlock()
		return err
	}
	if wait <= 0 || o.waiting >= maxWaiting {
		o.mu.Unlock()
		return ErrSlow
	}
	if o.turn == nil {
		o.turn = make(chan struct{}, 1)
	}
	o.waiting++
	o.mu.Unlock()
	return o.pushSlow(wait, size, events)
}

// pushSlow waits for its turn and then for room.
func (o *outbox) pushSlow(wait time.Duration, size int, events []Event) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	defer func() {
		o.mu.Lock()
		o.waiting--
		o.mu.Unlock()
	}()
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-timer.C:
		return ErrSlow
	}
	for {
		o.mu.Lock()
		if done, err := o.tryLocked(true, size, events); done {
			o.mu.Unlock()
			return err
		}
		room := o.roomLocked()
		o.mu.Unlock()
		select {
		case <-room:
		case <-timer.C:
			return ErrSlow
		}
	}
}

func (o *outbox) tryLocked(mayEnter bool, size int, events []Event) (done bool, err error) {
	if o.closed {
		return true, ErrClosed
	}
	if !mayEnter || o.bytes > 0 && o.bytes+size > o.limit {
		return false, nil
	}
	o.bytes += size
	o.queue = append(o.queue, events...)
	o.pumpLocked()
	return true, nil
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
	if !o.closed {
		o.pumpLocked()
	}
	o.wakeLocked()
}

// roomLocked is closed when something has been written, or at the end.
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

// close drops what was not taken and fails all pushers.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.sink, o.queue, o.head = nil, nil, 0
	o.wakeLocked()
}

// flushed returns once all is written, or after the wait, and reports which.
func (o *outbox) flushed(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		o.mu.Lock()
		if o.bytes == 0 || o.closed {
			empty := o.bytes == 0
			o.mu.Unlock()
			return empty
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
