// Package buffer holds what one side of a session has sent and the other has not taken:
// in queues of messages, bounded in bytes. It also splits a stream into lines.
package buffer

import (
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// SendLimit is how many bytes of messages a session keeps for a peer that does not
	// read.
	SendLimit = 8 << 20
	// MaxMessageBytes is the default limit of a server's messages.
	MaxMessageBytes = 16 << 20
	// ItemCost is added to the length of each queued message, so that the limit bounds
	// many small messages too.
	ItemCost = budget.ItemCost
	// keepItems is the largest capacity that an empty FIFO keeps: idle sessions must be
	// small, but a call after another one should not allocate.
	keepItems = 8
)

// item is a message and the id of the request that it came with; empty for none. In
// place of a message there may be an error for Pop to return.
type item struct {
	msg     []byte
	request jsonrpc.ID
	err     error
}

// size is what an item counts, in bytes.
func (it item) size() int {
	if it.err != nil {
		return ItemCost + HeadBytes + tailBytes
	}
	return ItemCost + len(it.msg)
}

// FIFO is a first-in first-out list of messages that counts their bytes. The zero FIFO
// is empty. It is not safe for concurrent use.
type FIFO struct {
	items []item
	head  int
	Bytes int // of the items, ItemCost included
}

// Len returns the number of messages.
func (f *FIFO) Len() int { return len(f.items) - f.head }

// Fits reports whether a message may be added under limit, in bytes. Any message fits
// into an empty FIFO.
func (f *FIFO) Fits(msg []byte, limit int) bool { return f.fits(item{msg: msg}, limit) }

func (f *FIFO) fits(it item, limit int) bool {
	return f.Len() == 0 || f.Bytes+it.size() <= limit
}

// Push adds msg at the end.
func (f *FIFO) Push(msg []byte) { f.add(item{msg: msg}) }

func (f *FIFO) add(it item) {
	if f.head > 0 && len(f.items) == cap(f.items) && f.head >= len(f.items)/2 {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, it)
	f.Bytes += it.size()
}

// Pop removes and returns the first message. The FIFO must not be empty.
func (f *FIFO) Pop() []byte { return f.take().msg }

func (f *FIFO) take() item {
	it := f.items[f.head]
	f.items[f.head] = item{}
	f.head++
	f.Bytes -= it.size()
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
		if cap(f.items) > keepItems {
			f.items = nil
		}
	}
	return it
}

// Queue is a FIFO between goroutines, bounded in bytes. One goroutine takes messages
// out. A message counts against the budget until that goroutine calls Pop again, or the
// queue is aborted. Queue is safe for concurrent use.
type Queue struct {
	mu    sync.Mutex // guards all below
	ready sync.Cond  // there is a message, or the queue is closed
	room  sync.Cond  // there is room, or the queue is closed
	fifo  FIFO
	limit int
	held  *budget.Account
	taken int   // bytes that were taken out and still count
	err   error // why it is closed; nil while open
}

// NewQueue returns an empty queue for limit bytes, or one larger message, which count
// against held.
func NewQueue(limit int, held *budget.Account) *Queue {
	q := &Queue{limit: limit, held: held}
	q.ready.L, q.room.L = &q.mu, &q.mu
	return q
}

// Offer adds msg without waiting. It fails with ErrBusy when the queue is full or the
// budget used up, and with the reason when the queue is closed.
func (q *Queue) Offer(msg []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch size := len(msg) + ItemCost; {
	case q.err != nil:
		return q.err
	case !q.fifo.Fits(msg, q.limit):
		return jsonrpc.ErrBusy
	case TakeSend(q.held, size, q.fifo.Bytes):
	case isResponse(msg): // the server waits for it
		q.held.Force(size)
	default:
		return budget.ErrBusy
	}
	q.fifo.Push(msg)
	q.ready.Signal()
	return nil
}

// TakeSend takes size bytes for a message to a server, for whose session other messages
// of waiting bytes wait, and reports whether the budget has them. What is short may
// always wait: it may be the answer or the cancellation that ends other work.
func TakeSend(held *budget.Account, size, waiting int) bool {
	if waiting+size <= budget.Free {
		held.Force(size)
		return true
	}
	return held.Take(size, metrics.HeldSend)
}

func isResponse(msg []byte) bool {
	m, err := jsonrpc.Parse(msg)
	return err == nil && m.Kind == jsonrpc.Response
}

// Push waits for room and adds msg. It fails with the reason when the queue is closed.
func (q *Queue) Push(msg []byte) error { return q.PushFor(msg, "") }

// PushFor is Push for a message that came with a request.
func (q *Queue) PushFor(msg []byte, request jsonrpc.ID) error {
	return q.push(item{msg: msg, request: request})
}

// PushError is Push for an error that Pop returns in place of a message. It counts as
// much as that of Ends.
func (q *Queue) PushError(err error) error { return q.push(item{err: err}) }

func (q *Queue) push(it item) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.err == nil && !q.roomForLocked(it) {
		q.room.Wait()
	}
	if q.err != nil {
		return q.err
	}
	q.held.Force(it.size())
	q.fifo.add(it)
	q.ready.Signal()
	return nil
}

// roomForLocked reports whether there is room for an item. While the budget is used up,
// there is less.
func (q *Queue) roomForLocked(it item) bool {
	limit := q.limit
	if q.held.Full() {
		limit = min(limit, budget.Free)
	}
	return q.fifo.fits(it, limit)
}

// Pop waits for the next message. It fails with an error that was pushed, and with the
// reason when the queue is closed and empty.
func (q *Queue) Pop() ([]byte, error) {
	msg, _, err := q.PopFor()
	return msg, err
}

// PopFor is Pop, and also returns the id of the request that the message came with.
func (q *Queue) PopFor() ([]byte, jsonrpc.ID, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releaseLocked()
	for q.fifo.Len() == 0 {
		if q.err != nil {
			return nil, "", q.err
		}
		q.ready.Wait()
	}
	it := q.fifo.take()
	q.taken += it.size()
	q.room.Broadcast()
	return it.msg, it.request, it.err
}

// releaseLocked gives back what was taken out.
func (q *Queue) releaseLocked() {
	q.held.Give(q.taken)
	q.taken = 0
}

// Poll is Pop without waiting; what was taken out before goes on to count. It returns
// false if there is no message. It must not be used with PushError.
func (q *Queue) Poll() ([]byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fifo.Len() == 0 {
		return nil, false
	}
	it := q.fifo.take()
	q.taken += it.size()
	q.room.Broadcast()
	return it.msg, true
}

// End closes the queue for writers. Its messages can still be read. The first reason
// stays.
func (q *Queue) End(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = why
	}
	q.wakeLocked()
}

// Discard drops the messages of a closed queue that nobody will read. The reason stays.
func (q *Queue) Discard() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropLocked()
}

func (q *Queue) dropLocked() {
	q.held.Give(q.fifo.Bytes)
	q.fifo = FIFO{}
	q.releaseLocked()
}

// Abort closes the queue and drops its messages. Its reason replaces an earlier one.
func (q *Queue) Abort(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = why
	q.dropLocked()
	q.wakeLocked()
}

func (q *Queue) wakeLocked() {
	q.ready.Broadcast()
	q.room.Broadcast()
}
