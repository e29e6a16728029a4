package compose

import (
	"time"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/merge"
)

// memoryWait is how long initialize waits for members that memory answers: as long as memory waits for a disk.
const memoryWait = 250 * time.Millisecond

// watch follows the condition of a member that has not answered initialize, or fails, in a goroutine. The goroutine
// ends with the connection, and at the first change of the condition after the member has answered.
func (c *conn) watch() {
	from, ok := c.Conn.(asker.Conditional)
	if !ok {
		return
	}
	now, changed := from.Condition()
	if !c.noteFirst(now) {
		return
	}
	go func() {
		for {
			select {
			case <-changed:
			case <-c.over:
				return
			}
			now, changed = from.Condition()
			if !c.note(now) {
				return
			}
		}
	}()
}

// noteFirst is note for the first condition. It reports false if there is no need of another goroutine.
func (c *conn) noteFirst(now asker.Condition) bool {
	s := c.link.s
	s.mu.Lock()
	defer s.unlock()
	if c.watched || !c.isWatchable() {
		return false
	}
	c.watched = true
	c.take(now)
	return true
}

// note takes the condition of a member, and reports whether to go on.
func (c *conn) note(now asker.Condition) bool {
	s := c.link.s
	s.mu.Lock()
	defer s.unlock()
	if !c.isWatchable() {
		c.watched = false
		return false
	}
	c.take(now)
	return true
}

// isWatchable reports whether the condition of the member matters.
func (c *conn) isWatchable() bool {
	l := c.link
	return l.s.err == nil && l.conn == c && (l.state == asking || l.state == failing)
}

// take does what follows from a condition, with session.mu held. A member whose start has failed is waited for by
// nobody, although it has not answered. One that is well again is asked again.
func (c *conn) take(now asker.Condition) {
	l := c.link
	c.condition = now
	switch {
	case l.state == asking && now == asker.Failed:
		l.failed(refused, "its start has failed")
	case l.state == failing && (now == asker.Known || now == asker.Up):
		l.event(retry, merge.Tools)
	}
	l.s.settle()
}

// answersAtOnce reports whether the member may answer the client's initialize within milliseconds: it is being dialled,
// or memory may answer for it.
func (l *link) answersAtOnce() bool {
	switch {
	case l.state != asking:
		return false
	case l.dial != nil:
		return true
	default:
		return l.conn != nil && (l.conn.condition == asker.Asking || l.conn.condition == asker.Known)
	}
}
