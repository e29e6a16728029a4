package connstate

import (
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Event is one server-sent event on its way to the client. Data is one line;
// an event without Data is a comment line that holds Name.
type Event struct {
	Name string
	Data []byte
	// Retry, when positive, tells the client how long to wait before it
	// reconnects, in milliseconds.
	Retry int
	// Related is the client's request that the message in Data answers, or came with;
	// empty if unknown. Answer says that it is the answer.
	Related jsonrpc.ID
	Answer  bool
}

// maxWaiting and maxWaitingBytes bound the sends that wait for room, scarceWaitingBytes
// those while the budget is used up. A larger one waits alone.
const (
	maxWaiting         = 1024
	maxWaitingBytes    = 16 << 20
	scarceWaitingBytes = 64 << 10
)

// maxWaits bounds the time that a client which reads steadily may keep a sender
// waiting, in times of the wait of one that does not read. A session's reader must
// not be kept so long that its server looks silent.
const maxWaits = 3

// eventOverhead is what an event counts for beside its data, in bytes.
const eventOverhead = 64

// Size is what the event counts for in an outbox, in bytes.
func (e Event) Size() int { return len(e.Data) + eventOverhead }

// outbox holds the events that wait to be written to one client, bounded in bytes.
// Senders fill it; the stream takes events through the sink and says when they are
// written. An event counts until then. Senders that find no room wait in FIFO order.
// All bytes, those of waiting senders too, come out of the budget.
type outbox struct {
	limit int
	held  *budget.Account

	mu      sync.Mutex
	sink    func(Event) bool // takes an event if it has room; must not block
	queue   []Event          // queue[head:] has not been taken yet
	head    int
	bytes   int           // queued and taken, not yet written
	wrote   int           // written, ever
	waiters []*waiter     // oldest first; empty when the outbox is
	waiting int           // bytes of the waiters' events
	room    chan struct{} // closed when something has been written, or at the end
	closed  bool
}

// waiter is a send that waits for room in the outbox.
type waiter struct {
	events []Event
	size   int
	done   chan struct{} // closed when the events have entered, or never will
	err    error         // why not; set before done is closed
}

func newOutbox(limit int, held *budget.Account) *outbox {
	return &outbox{limit: limit, held: held}
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
	o.held.Force(e.Size())
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

// enter adds events, which stay together. If there is no room, it returns a waiter
// for them, for which the caller must call await. It fails with ErrSlow if too many
// senders wait: fewer may if the budget is used up, because senders that do not block
// go on.
func (o *outbox) enter(events []Event, blocks bool) (*waiter, error) {
	size := 0
	for _, e := range events {
		size += e.Size()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	full := o.held.Full()
	most := maxWaitingBytes
	if full && !blocks {
		most = scarceWaitingBytes
	}
	switch {
	case o.closed:
		return nil, ErrClosed
	case len(o.waiters) == 0 && o.fitsLocked(size) && (!full || o.allowsLocked(size)):
		o.held.Force(size)
		o.addLocked(size, events...)
		return nil, nil
	case len(o.waiters) >= maxWaiting || o.waiting > 0 && o.waiting+size > most:
		if full {
			o.held.Check(metrics.HeldOutbox)
		}
		return nil, ErrSlow
	}
	w := &waiter{events: slices.Clone(events), size: size, done: make(chan struct{})}
	o.waiters = append(o.waiters, w)
	o.waiting += size
	o.held.Force(size)
	return w, nil
}

// await waits until the waiter's events have entered: as long as something has been
// written to the client within the time wait, and at most three times as long in all.
// Then it removes the waiter and fails with ErrSlow. The room is not reused: the
// client is about to be closed. lastWrite returns when something was last written.
func (o *outbox) await(w *waiter, wait time.Duration, lastWrite func() time.Time) error {
	last := time.Now().Add(maxWaits * wait)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for left := wait; left > 0; {
		select {
		case <-w.done:
			return w.err
		case <-timer.C:
			left = min(wait-time.Since(lastWrite()), time.Until(last))
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
	o.held.Give(w.size)
	return ErrSlow
}

// fitsLocked reports whether there is room for size bytes. An empty outbox takes
// anything.
func (o *outbox) fitsLocked(size int) bool { return o.bytes == 0 || o.bytes+size <= o.limit }

// allowsLocked reports whether size bytes may wait whatever the budget says: up to
// budget.Free bytes, and one message of any size.
func (o *outbox) allowsLocked(size int) bool { return o.bytes == 0 || o.bytes+size <= budget.Free }

func (o *outbox) addLocked(size int, events ...Event) {
	o.bytes += size
	o.queue = append(o.queue, events...)
	o.pumpLocked()
}

// moveWaitersLocked moves waiting events into the outbox, oldest first, while there
// is room.
func (o *outbox) moveWaitersLocked() {
	for len(o.waiters) > 0 {
		w := o.waiters[0]
		if !o.fitsLocked(w.size) || !o.allowsLocked(w.size) && o.held.Full() {
			return
		}
		o.waiters[0] = nil
		o.waiters = o.waiters[1:]
		o.waiting -= w.size
		o.addLocked(w.size, w.events...)
		close(w.done)
	}
}

// pumpLocked hands events to the sink until the sink has no room.
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

// attach sets the sink of the stream that takes the events.
func (o *outbox) attach(sink func(Event) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sink = sink
	o.pumpLocked()
}

// noteWritten frees the room of a taken event of that size, and offers the sink the
// next ones.
func (o *outbox) noteWritten(size int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes -= size
	o.wrote += size
	if !o.closed { // else close has given all back
		o.held.Give(size)
		o.pumpLocked()
		o.moveWaitersLocked()
	}
	o.signalRoomLocked()
}

func (o *outbox) roomLocked() <-chan struct{} {
	if o.room == nil {
		o.room = make(chan struct{})
	}
	return o.room
}

func (o *outbox) signalRoomLocked() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// unwritten returns the number of bytes that are not written yet.
func (o *outbox) unwritten() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes
}

// close drops the events that were not taken and fails the waiting senders.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.held.Give(o.bytes + o.waiting)
	}
	o.closed = true
	o.sink, o.queue, o.head = nil, nil, 0
	for _, w := range o.waiters {
		w.err = ErrClosed
		close(w.done)
	}
	o.waiters, o.waiting = nil, 0
	o.signalRoomLocked()
}

// waitWritten waits until everything sent so far is written, at most for wait, and
// reports whether it is.
func (o *outbox) waitWritten(wait time.Duration) bool {
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
