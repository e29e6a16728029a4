package connstate

import (
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Answer sends the response to a request and removes it from the unanswered ones. It
// reports false, and sends nothing, if the request has been answered already. It
// waits for room like Send. The channel of Drain stays open until then.
func (c *Connection) Answer(id jsonrpc.ID, response []byte, errorType string) bool {
	dialect, ok := c.beginAnswer(id, response, errorType)
	if ok {
		events := responseEvents(new([2]Event), dialect, id, response)
		_ = c.send(events) // a connection that is slow or gone has been closed
		c.endAnswer()
	}
	return ok
}

// AnswerNow is Answer for callers that must not wait, as in RespondNow.
func (c *Connection) AnswerNow(id jsonrpc.ID, response []byte, errorType string) bool {
	dialect, ok := c.beginAnswer(id, response, errorType)
	if ok {
		c.sendNow(responseEvents(new([2]Event), dialect, id, response))
		c.endAnswer()
	}
	return ok
}

// beginAnswer removes a request from the unanswered ones and returns the dialect for
// the response. The response counts as under way until the caller calls
// endAnswer. It reports false if the request has been answered already.
func (c *Connection) beginAnswer(id jsonrpc.ID, response []byte, errorType string) (dialect Dialect, ok bool) {
	now := time.Now()
	c.mu.Lock()
	r, ok := c.takeRequestLocked(id, now)
	if ok {
		c.answering.Add(1)
	}
	dialect = c.dialect
	c.mu.Unlock()
	if ok {
		c.reportDone(id, r, errorType, response, now)
	}
	return dialect, ok
}

// endAnswer notes that a response is in the outbox. It takes the lock only when
// somebody may wait for that: awaitQuietLocked sets awaited before it reads answering, and
// endAnswer decrements answering before it reads awaited, so one of them sees the other.
func (c *Connection) endAnswer() {
	if c.answering.Add(-1) == 0 && c.awaited.Load() {
		c.mu.Lock()
		c.signalQuietLocked()
		c.mu.Unlock()
	}
}

// signalQuietLocked closes quiet when no request is unanswered and no response is on
// its way into the outbox.
func (c *Connection) signalQuietLocked() {
	if c.quiet != nil && c.requests.Len() == 0 && c.answering.Load() == 0 {
		close(c.quiet)
		c.quiet = nil
	}
}
