package connstate

import (
	"errors"
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

	progress *Request // whose progress the message reports; nil: it reports none
}

// IsLate reports whether the event reports progress of a request that is answered. Whoever
// puts events in order must drop it then. The answer comes after IsLate has become true.
func (e Event) IsLate() bool { return e.progress != nil && e.progress.answered.Load() }

// errLate reports an event that is late.
var errLate = errors.New("progress of an answered request")

// maxUnwritten bounds the unwritten events of senders that do not wait, in bytes; a
// larger event passes alone.
const maxUnwritten = 16 << 20

// maxWaits bounds the wait for room, in times of OutboxWait: the stream closes a client
// that does not read, and one that reads slowly must not keep a session's reader for so
// long that its server looks silent.
const maxWaits = 3

// Size is what the event counts for in an outbox, in bytes.
func (e Event) Size() int { return len(e.Data) + budget.ItemCost }

// outbox holds the events that wait to be written to one client, bounded in bytes.
// Senders fill it; the stream takes events through the sink and says when they are
// written. An event counts until then. All bytes come out of the budget.
type outbox struct {
	limit   int // for senders that wait
	held    *budget.Account
	deliver func(Event) // set by DeliverTo: gets the events, which the outbox does not hold then

	mu     sync.Mutex
	sink   func(Event) bool // takes an event if it has room; must not block
	queue  []Event          // not taken yet
	bytes  int              // queued and taken, not yet written
	wrote  int              // written, ever
	room   chan struct{}    // closed when something has been written, or at the end; nil: nobody waits
	closed bool
}

// push adds events, which stay together, if there is room for them now, and fails with
// ErrSlow if not. It returns a mark for hasWritten.
func (o *outbox) push(events ...Event) (mark int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.addLocked(o.limit, events)
}

// force is push beyond the limit, up to maxUnwritten. While the budget is used up, the
// limit holds.
func (o *outbox) force(events []Event) error {
	if o.deliverNow(events) {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	limit := maxUnwritten
	if o.held.Full() {
		limit = o.limit
	}
	_, err := o.addLocked(limit, events)
	if err == ErrSlow && limit == o.limit {
		o.held.Check(metrics.HeldOutbox)
	}
	return err
}

// wait is push for senders that may wait for room, at most for the time given. While the
// budget is used up, there is room for little.
func (o *outbox) wait(events []Event, most time.Duration) error {
	if o.deliverNow(events) {
		return nil
	}
	room, err := o.tryAdd(events)
	if err != ErrSlow {
		return err
	}
	for timeout := time.After(most); err == ErrSlow; room, err = o.tryAdd(events) {
		select {
		case <-room:
		case <-timeout:
			return ErrSlow
		}
	}
	return err
}

// tryAdd is one try of wait. If there is no room, it returns a channel that is closed
// when there may be.
func (o *outbox) tryAdd(events []Event) (room <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	limit := o.limit
	if o.held.Full() {
		limit = min(limit, budget.Free)
	}
	if _, err = o.addLocked(limit, events); err == ErrSlow {
		room = o.roomLocked()
	}
	return room, err
}

// deliverNow gives events to the function of DeliverTo, if there is one.
func (o *outbox) deliverNow(events []Event) bool {
	if o.deliver == nil {
		return false
	}
	for _, e := range events {
		o.deliver(e)
	}
	return true
}

// addLocked adds events if there is room for them within limit. An empty outbox takes
// anything.
func (o *outbox) addLocked(limit int, events []Event) (mark int, err error) {
	size := 0
	for _, e := range events {
		size += e.Size()
	}
	switch {
	case o.closed:
		return 0, ErrClosed
	case len(events) == 1 && events[0].IsLate():
		return 0, errLate
	case o.bytes > 0 && o.bytes+size > limit:
		return 0, ErrSlow
	}
	o.held.Force(size)
	o.bytes += size
	o.queue = append(o.queue, events...)
	o.pumpLocked()
	return o.wrote + o.bytes, nil
}

// hasWritten reports whether the events with that mark have been written.
func (o *outbox) hasWritten(mark int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wrote >= mark
}

// pumpLocked hands events to the sink until the sink has no room.
func (o *outbox) pumpLocked() {
	if o.sink == nil {
		return
	}
	taken := 0
	for taken < len(o.queue) && o.sink(o.queue[taken]) {
		o.queue[taken] = Event{}
		taken++
	}
	if o.queue = o.queue[taken:]; len(o.queue) == 0 {
		o.queue = nil
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
		o.held.Give(o.bytes)
	}
	o.closed = true
	o.sink, o.queue = nil, nil
	o.signalRoomLocked()
}

// waitWritten waits until everything sent so far is written, at most for wait.
func (o *outbox) waitWritten(wait time.Duration) {
	timeout := time.After(wait)
	o.mu.Lock()
	target := o.wrote + o.bytes
	for o.wrote < target && !o.closed {
		room := o.roomLocked()
		o.mu.Unlock()
		select {
		case <-room:
		case <-timeout:
			return
		}
		o.mu.Lock()
	}
	o.mu.Unlock()
}

// RespondNow sends the response to the request with that id, or with an id that no
// request has, under the event name of the connection's dialect, or under both names
// while that is undecided. It does not wait: the outbox has room beyond its limit, and a
// client that exceeds that too loses its connection.
func (c *Connection) RespondNow(id jsonrpc.ID, response []byte) {
	_ = c.send(responseEvents(new([2]Event), c.Dialect(), id, response), false)
}

// SendNow is Send for callers that must not wait, as in RespondNow.
func (c *Connection) SendNow(related jsonrpc.ID, message []byte) {
	_ = c.send(c.messageEvents(new([1]Event), related, message), false)
}

// responseEvents returns the events that carry a response. They are in room, which
// belongs to the caller and need not outlive the send.
func responseEvents(room *[2]Event, dialect Dialect, id jsonrpc.ID, response []byte) []Event {
	room[0] = Event{Name: string(dialect), Data: response, Related: id, Answer: true}
	if dialect != "" {
		return room[:1]
	}
	room[1] = room[0]
	room[0].Name, room[1].Name = EventMessage, EventResponse
	return room[:]
}

// Send sends a server's request or notification, once. related is the client's request
// that it came with, empty if unknown. Send waits for room in the outbox, for a bounded
// time, then closes the connection and returns ErrSlow. It returns ErrClosed if the
// connection is over.
func (c *Connection) Send(related jsonrpc.ID, message []byte) error {
	return c.send(c.messageEvents(new([1]Event), related, message), true)
}

// messageEvents is responseEvents for a request or a notification.
func (c *Connection) messageEvents(room *[1]Event, related jsonrpc.ID, message []byte) []Event {
	room[0] = Event{Name: EventMessage, Data: message, Related: related}
	if dialect := c.Dialect(); dialect != "" {
		room[0].Name = string(dialect)
	}
	return room[:]
}

// send sends events, as Send does if it may wait, else as SendNow does. A client that
// leaves no room for them loses its connection.
func (c *Connection) send(events []Event, mayWait bool) error {
	var err error
	if mayWait {
		err = c.outbox.wait(events, maxWaits*c.opts.OutboxWait)
	} else {
		err = c.outbox.force(events)
	}
	switch {
	case err == nil:
		for _, e := range events {
			c.countOut(e)
		}
	case err == errLate:
		c.opts.Metrics.Dropped(metrics.DroppedUnknownProgress)
	case errors.Is(err, ErrSlow):
		c.Close(ClosedSlow)
	}
	return err
}

func (c *Connection) countOut(e Event) {
	if e.Data == nil {
		return
	}
	c.messagesOut.Add(1)
	c.bytesOut.Add(int64(len(e.Data)))
	c.opts.Metrics.MessageOut(len(e.Data))
}
