// Package buffer holds what one side of a session has sent and the other has not taken:
// queues of messages, bounded in bytes.
package buffer

import (
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// SendLimit is how many bytes of messages a session keeps for a peer that does not
	// read.
	SendLimit = 8 << 20
	// MaxMessageBytes is the default limit of a server's messages.
	MaxMessageBytes = 16 << 20
)

// item is a message and the id of the request that it came with; empty for none.
type item struct {
	msg     []byte
	request jsonrpc.ID
}

// Queue is a first-in first-out list of messages between goroutines, bounded in bytes.
// It is safe for concurrent use.
type Queue struct {
	mu      sync.Mutex // guards all below
	changed sync.Cond  // the items have changed, or the queue is closed
	items   []item
	bytes   int // of items, budget.ItemCost included
	limit   int
	err     error // why it is closed; nil while open
}

// NewQueue returns an empty queue for limit bytes, or one larger message.
func NewQueue(limit int) *Queue {
	q := &Queue{limit: limit}
	q.changed.L = &q.mu
	return q
}

// Offer adds msg without waiting. It fails with ErrBusy when the queue is full, and with
// the reason when the queue is closed.
func (q *Queue) Offer(msg []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.err != nil:
		return q.err
	case !q.fitsLocked(msg):
		return jsonrpc.ErrBusy
	}
	q.addLocked(item{msg: msg})
	return nil
}

// Push waits for room and adds a message that came with a request; empty for none. It
// fails with the reason when the queue is closed.
func (q *Queue) Push(msg []byte, request jsonrpc.ID) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.err == nil && !q.fitsLocked(msg) {
		q.changed.Wait()
	}
	if q.err != nil {
		return q.err
	}
	q.addLocked(item{msg, request})
	return nil
}

func (q *Queue) fitsLocked(msg []byte) bool {
	return len(q.items) == 0 || q.bytes+len(msg)+budget.ItemCost <= q.limit
}

func (q *Queue) addLocked(it item) {
	q.items = append(q.items, it)
	q.bytes += len(it.msg) + budget.ItemCost
	q.changed.Broadcast()
}

// RecvFor waits for the next message and returns it with the id of the request that it
// came with. It fails with the reason when the queue is closed and empty.
func (q *Queue) RecvFor() ([]byte, jsonrpc.ID, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 {
		if q.err != nil {
			return nil, "", q.err
		}
		q.changed.Wait()
	}
	it := q.takeLocked()
	return it.msg, it.request, nil
}

// Recv is RecvFor without the request.
func (q *Queue) Recv() ([]byte, error) {
	msg, _, err := q.RecvFor()
	return msg, err
}

// Poll is Recv without waiting. It reports false if there is no message.
func (q *Queue) Poll() ([]byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return nil, false
	}
	return q.takeLocked().msg, true
}

func (q *Queue) takeLocked() item {
	it := q.items[0]
	q.items[0] = item{}
	q.items = q.items[1:]
	if len(q.items) == 0 {
		q.items = nil
	}
	q.bytes -= len(it.msg) + budget.ItemCost
	q.changed.Broadcast()
	return it
}

// End closes the queue for writers. Its messages can still be read. The first reason
// stays.
func (q *Queue) End(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = why
	}
	q.changed.Broadcast()
}

// Abort closes the queue and drops its messages. Its reason replaces an earlier one.
func (q *Queue) Abort(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items, q.bytes, q.err = nil, 0, why
	q.changed.Broadcast()
}
