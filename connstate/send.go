package connstate

import (
	"errors"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// RespondNow sends the response to the request with that id, or with an id that no
// request has, under the event name of the connection's dialect, or under both names
// while that is undecided. It does not wait: the outbox has room beyond its limit, and a
// client that exceeds that too loses its connection.
func (c *Connection) RespondNow(id jsonrpc.ID, response []byte) {
	c.sendNow(responseEvents(new([2]Event), c.Dialect(), id, response))
}

// SendNow is Send for callers that must not wait, as in RespondNow.
func (c *Connection) SendNow(related jsonrpc.ID, message []byte) {
	c.sendNow(c.messageEvents(new([1]Event), related, message))
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
	return c.send(c.messageEvents(new([1]Event), related, message))
}

// messageEvents is responseEvents for a request or a notification.
func (c *Connection) messageEvents(room *[1]Event, related jsonrpc.ID, message []byte) []Event {
	room[0] = Event{Name: EventMessage, Data: message, Related: related}
	if dialect := c.Dialect(); dialect != "" {
		room[0].Name = string(dialect)
	}
	return room[:]
}

// Divert makes the connection give its events to deliver, in place of a stream that takes
// them from the outbox: deliver keeps those that cannot be written at once, within bounds
// of its own, and must not block. The transport calls Divert once, before Bind.
func (c *Connection) Divert(deliver func(Event)) { c.deliver = deliver }

// Push queues an event of the transport's own if there is room for it now. It fails
// with ErrSlow if there is none, without closing the connection, and with ErrClosed
// if the connection is closed.
func (c *Connection) Push(e Event) error {
	_, err := c.outbox.push(e)
	if err == nil {
		c.countEvents([]Event{e})
	}
	return err
}

// send sends events, and waits for room as Send does. A client that leaves none for too
// long loses its connection.
func (c *Connection) send(events []Event) error {
	if c.deliver != nil {
		return c.divert(events)
	}
	return c.finishSend(events, c.outbox.wait(events, maxWaits*c.opts.OutboxWait))
}

// sendNow is send for callers that must not wait.
func (c *Connection) sendNow(events []Event) {
	if c.deliver != nil {
		_ = c.divert(events)
		return
	}
	_ = c.finishSend(events, c.outbox.force(events)) // closes a slow client
}

// divert gives events to the function of Divert.
func (c *Connection) divert(events []Event) error {
	c.countEvents(events)
	for _, e := range events {
		c.deliver(e)
	}
	return nil
}

// finishSend ends a send that returned err: it counts the events, or closes a
// connection whose client left no room. It returns err.
func (c *Connection) finishSend(events []Event, err error) error {
	switch {
	case err == nil:
		c.countEvents(events)
	case errors.Is(err, ErrSlow):
		c.Close(metrics.ClosedSlow)
	}
	return err
}

func (c *Connection) countEvents(events []Event) {
	for _, e := range events {
		if e.Data != nil {
			c.countOut(len(e.Data))
		}
	}
}

func (c *Connection) countOut(bytes int) {
	c.messagesOut.Add(1)
	c.bytesOut.Add(int64(bytes))
	c.opts.Metrics.MessageOut(bytes)
}
