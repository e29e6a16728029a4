package multiplex

import (
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/deadline"
	"github.com/mcp-sse/mcp-sse/internal/few"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// maxAbandoned bounds the abandoned requests that a session remembers.
	maxAbandoned = 1024
	// maxKept bounds a request kept for repeating, in bytes, and maxKeptBytes all of a
	// session's.
	maxKept      = 64 << 10
	maxKeptBytes = 8 << 20
)

// table holds the unanswered requests of a session: those that the server has, and
// those that wait. It sends nothing and calls no client. Guarded by Session.mu.
type table struct {
	opts   *Options
	lastID int64
	byID   few.Map[int64, *pending] // by id on the wire

	out      int // requests that the server has
	inFlight int // those of them that count towards MaxInFlight
	blocked  int // those of them that may block
	kept     int // bytes of those kept for repeating

	queue     queue
	deadlines deadline.Set[expiring]
	hang      suspicion
	shared    shared

	// abandoned holds the ids of requests that were given up and that the server may
	// still answer. The id 0 is there if there were more than maxAbandoned; no answer
	// removes it.
	abandoned map[int64]struct{}
	sawID     bool // the server has answered with an id
	// notified is the id that the next request had when a notification was last sent;
	// 0 if none was, or a later request has been answered.
	notified int64
}

// add puts a request into the table and gives it an id and, unless timeout is 0, a
// deadline. A Call of the session has none: its context bounds it.
func (t *table) add(p *pending, timeout time.Duration) {
	t.lastID++
	p.id, p.started = t.lastID, t.deadlines.Now()
	t.byID.Set(p.id, p)
	if p.caller != nil {
		p.caller.addRequest(p)
	}
	if timeout > 0 {
		t.deadlines.Put(&p.timed, p, p.started+timeout)
	}
}

// extend gives a request another RequestTimeout, up to MaxRequestTimeout in all, and
// reports whether it has time left.
func (t *table) extend(p *pending) bool {
	now, most := t.deadlines.Now(), p.started+t.opts.MaxRequestTimeout
	t.deadlines.Put(&p.timed, p, min(now+t.opts.RequestTimeout, most))
	return now < most
}

// markSent notes that a request goes to the server, and returns its message.
func (t *table) markSent(p *pending) *jsonrpc.Message {
	m := p.request
	p.sent = true
	t.hang.expect(t.deadlines.Now())
	t.out++
	if p.counted {
		t.inFlight++
	}
	if p.mayBlock() {
		t.blocked++
	}
	size := len(m.Raw())
	if !p.safe || size > maxKept || t.kept+size > maxKeptBytes || !t.opts.Budget.Take(size, metrics.HeldRepeat) {
		p.request = nil
		return m
	}
	t.kept += size
	return m
}

// remove takes a request out of the table and reports whether it was there. If so,
// the caller must answer it.
func (t *table) remove(p *pending) bool {
	if found, _ := t.byID.Get(p.id); found != p {
		return false
	}
	t.byID.Delete(p.id)
	t.deadlines.Drop(&p.timed)
	if p.caller != nil {
		p.caller.removeRequest(p)
	}
	if p.sent {
		t.unmarkSent(p)
	} else {
		t.queue.remove(p)
	}
	if p.serial != nil {
		t.leaveSerial(p)
	}
	if p == t.hang.ping {
		t.hang.ping = nil
	}
	return true
}

func (t *table) unmarkSent(p *pending) {
	t.out--
	if !p.canceled {
		t.hang.unexpect(t.deadlines.Now())
	}
	if p.counted {
		t.inFlight--
	}
	if p.mayBlock() {
		t.blocked--
	}
	if p.request != nil {
		t.kept -= len(p.request.Raw())
		t.opts.Budget.Give(len(p.request.Raw()))
	}
}

// abandon removes a request that is given up. If the server has it, abandon
// remembers that an answer may still come. It reports whether the request was in the
// table.
func (t *table) abandon(p *pending) bool {
	if !t.remove(p) {
		return false
	}
	if p.sent {
		id := p.id
		if t.abandoned == nil {
			t.abandoned = make(map[int64]struct{})
		}
		if len(t.abandoned) >= maxAbandoned {
			id = 0
		}
		t.abandoned[id] = struct{}{}
	}
	return true
}

// abandonAll abandons the requests of a caller and returns them, oldest first.
func (t *table) abandonAll(c *Caller) (abandoned []*pending) {
	for c.requests != nil {
		p := c.requests
		t.abandon(p)
		abandoned = append(abandoned, p)
	}
	slices.Reverse(abandoned)
	return abandoned
}

// removeAll empties the table and returns its requests, oldest first.
func (t *table) removeAll() []*pending {
	var open []*pending
	for _, p := range t.byID.All() {
		open = append(open, p)
	}
	slices.SortFunc(open, func(a, b *pending) int { return int(a.id - b.id) })
	for _, p := range open {
		if p.caller != nil {
			p.caller.requests = nil
		}
	}
	t.deadlines.Clear()
	t.opts.Budget.Give(t.queue.bytes + t.kept)
	t.byID, t.queue, t.hang, t.shared, t.abandoned = few.Map[int64, *pending]{}, queue{budget: t.opts.Budget}, suspicion{}, shared{}, nil
	t.out, t.inFlight, t.blocked, t.kept = 0, 0, 0, 0
	return open
}

// find returns the request that a response with that id answers, and how it was
// matched. The caller must remove it. A response without an id is matched only if it
// can answer a single request: one is out, none was abandoned, and an error is not
// about a notification, which does not count if MaxInFlight is 1. On a shared session
// a second answer to the same request would reach another client, so there
// MaxInFlight must be 1 and the server must never have sent an id.
func (t *table) find(id int64, failed bool) (*pending, string) {
	p, _ := t.byID.Get(id)
	by := metrics.MatchedID
	switch {
	case id == 0:
		p, by = t.onlySent(), metrics.MatchedFIFO
		serial := t.opts.MaxInFlight == 1
		if p == nil || t.opts.Shared && (!serial || t.sawID) || failed && t.notified > 0 && !serial {
			return nil, metrics.MatchedOrphan
		}
	case p == nil || !p.sent:
		if id > 0 {
			delete(t.abandoned, id)
		}
		return nil, metrics.MatchedOrphan
	default:
		t.sawID = true
	}
	if p.id >= t.notified {
		t.notified = 0
	}
	return p, by
}

// onlySent returns the one request that the server has; nil if there are others, or
// may be.
func (t *table) onlySent() *pending {
	if t.out != 1 || len(t.abandoned) > 0 {
		return nil
	}
	for _, p := range t.byID.All() {
		if p.sent {
			return p
		}
	}
	return nil
}

// whyUnmatched says why a response without an id was not matched; "" if it cannot
// answer any request.
func (t *table) whyUnmatched() string {
	switch {
	case t.out == 0 && len(t.abandoned) == 0:
		return ""
	case t.opts.MaxInFlight != 1:
		return "it may answer any of several messages: run with --max-in-flight 1"
	case len(t.abandoned) > 0:
		return "it may answer a request that was given up"
	}
	return "the server of a shared session has answered with ids before"
}
