package connstate

import (
	"cmp"
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
	// empty if unknown, null if it came with none. Answer says that it is the answer.
	Related jsonrpc.ID
	Answer  bool

	progress *Request // whose progress the message reports; nil: it reports none
}

// IsLate reports whether the event reports progress of a request that is answered, or that the client has
// cancelled. A transport must drop such an event when it puts events in order. IsLate becomes true before the
// answer comes.
func (e Event) IsLate() bool {
	return e.progress != nil && e.progress.hearing.Load() != awaited
}

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

// push adds an event if there is room for it now, and fails with ErrSlow if not. It returns
// a mark for hasWritten.
func (o *outbox) push(e Event) (mark int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.addLocked(o.limit, []Event{e})
}

// send is push for events that stay together. It waits for room, at most for the time
// given. With 0 it does not wait, and may exceed the limit up to maxUnwritten. While the
// budget is used up, the limit holds for those that do not wait, and there is little room
// for those that do. If DeliverTo has set a function, that gets the events instead.
func (o *outbox) send(events []Event, most time.Duration) error {
	if o.deliver != nil {
		for _, e := range events {
			o.deliver(e)
		}
		return nil
	}
	var timeout <-chan time.Time
	for {
		room, err := o.trySend(events, most > 0)
		if err != ErrSlow || most == 0 {
			return err
		}
		if timeout == nil {
			timeout = time.After(most)
		}
		select {
		case <-room:
		case <-timeout:
			return ErrSlow
		}
	}
}

// trySend is one try of send. If there is no room, it returns a channel that is closed
// when there may be.
func (o *outbox) trySend(events []Event, waits bool) (room <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	limit, full := o.limit, o.held.Full()
	switch {
	case waits && full:
		limit = min(limit, budget.Free)
	case !waits && !full:
		limit = maxUnwritten
	}
	_, err = o.addLocked(limit, events)
	switch {
	case err == ErrSlow && waits:
		room = o.roomLocked()
	case err == ErrSlow && full:
		o.held.Check(metrics.HeldOutbox)
	}
	return room, err
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
	o.held.ForceReserve(size)
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
	o.queue = o.queue[taken:]
	if len(o.queue) == 0 {
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
		o.held.Release(size)
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
		o.held.Release(o.bytes)
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
	_ = c.send(Event{Data: response, Related: id, Answer: true}, c.dialect(), false)
}

// SendNow is Send for callers that must not wait, as in RespondNow.
func (c ForHandler) SendNow(related jsonrpc.ID, message []byte) {
	_ = c.send(Event{Data: message, Related: related}, c.dialect(), false)
}

// Send sends a server's request or notification, once. related is the client's request
// that it came with, empty if unknown. Send waits for room in the outbox, for a bounded
// time, then closes the connection and returns ErrSlow. It returns ErrClosed if the
// connection is over.
func (c ForHandler) Send(related jsonrpc.ID, message []byte) error {
	return c.send(Event{Data: message, Related: related}, c.dialect(), true)
}

// send sends an event under the name or names of the dialect, as Send does if it may wait,
// else as SendNow does. A client that leaves no room for it loses its connection.
func (c *Connection) send(e Event, dialect Dialect, mayWait bool) error {
	e.Name = cmp.Or(string(dialect), EventMessage)
	room := [2]Event{e, e}
	events := room[:1]
	if dialect == "" && e.Answer {
		room[1].Name = EventResponse
		events = room[:]
	}
	var most time.Duration
	if mayWait {
		most = maxWaits * c.opts.OutboxWait
	}
	err := c.outbox.send(events, most)
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

// push counts an event if it has entered the outbox; see outbox.push.
func (c *Connection) push(e Event) (mark int, err error) {
	mark, err = c.outbox.push(e)
	if err == nil {
		c.countOut(e)
	}
	return mark, err
}

// countOut counts an event that has been written. One without data, such as a heartbeat, is no message.
func (c *Connection) countOut(e Event) {
	if e.Data == nil {
		return
	}
	c.messagesOut.Add(1)
	c.bytesOut.Add(int64(len(e.Data)))
	c.opts.Metrics.MessageOut(len(e.Data))
}
