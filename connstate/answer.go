package connstate

import (
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Answer sends the response to a request and takes it out of the unanswered
// ones. False: it has been answered already, and nothing was sent. It waits for
// room as Send does. A connection that drains is quiet only after it.
func (c *Connection) Answer(id jsonrpc.ID, response []byte, errorType string) bool {
	events, ok := c.beginAnswer(id, response, errorType)
	if ok {
		_ = c.send(events) // a connection that is slow or gone has been closed
		c.endAnswer()
	}
	return ok
}

// AnswerNow is Answer for callers that must not wait, as RespondNow is.
func (c *Connection) AnswerNow(id jsonrpc.ID, response []byte, errorType string) bool {
	events, ok := c.beginAnswer(id, response, errorType)
	if ok {
		c.sendNow(events)
		c.endAnswer()
	}
	return ok
}

// beginAnswer takes a request out of the unanswered ones and returns the events
// that carry the response. The response counts as under way until the caller
// calls endAnswer. False: the request has been answered already.
func (c *Connection) beginAnswer(id jsonrpc.ID, response []byte, errorType string) ([]Event, bool) {
	now := time.Now()
	c.mu.Lock()
	r, ok := c.takeRequestLocked(id, now)
	if ok {
		c.answering.Add(1)
	}
	dialect := c.dialect
	c.mu.Unlock()
	if !ok {
		return nil, false
	}
	c.reportDone(id, r, errorType, response, now)
	return responseEvents(dialect, response), true
}

// endAnswer notes that a response is in the outbox. It takes the lock only when
// Drain may wait for that: Drain sets draining before it looks at answering, and
// endAnswer looks the other way round, so that one of them sees the other.
func (c *Connection) endAnswer() {
	if c.answering.Add(-1) == 0 && c.draining.Load() {
		c.mu.Lock()
		c.quietLocked()
		c.mu.Unlock()
	}
}

// quietLocked closes quiet once nothing is unanswered, and no answer on its way
// into the outbox.
func (c *Connection) quietLocked() {
	if c.quiet != nil && len(c.requests) == 0 && c.answering.Load() == 0 {
		close(c.quiet)
		c.quiet = nil
	}
}
