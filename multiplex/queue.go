package multiplex

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// waitBytes bounds the requests of a session that wait, in bytes; one that is
// larger waits alone.
const waitBytes = 8 << 20

// queue has the requests that wait until the server has room for them: because
// of MaxInFlight, or because it is suspected to hang. Guarded by Session.mu.
type queue struct {
	list []*pending // in the order in which they came
	// count and bytes are of all that waits, in lanes too.
	count, bytes int
}

// takes reports whether there is room for one more, and takes it.
func (q *queue) takes(p *pending, limit int) bool {
	size := len(p.request.Raw())
	if q.count >= limit || q.bytes > 0 && q.bytes+size > waitBytes {
		return false
	}
	q.count++
	q.bytes += size
	return true
}

// leave takes a request out that has not been sent.
func (q *queue) leave(p *pending) {
	if i := slices.Index(q.list, p); i >= 0 {
		q.list = slices.Delete(q.list, i, i+1)
		q.freed(p)
	}
}

// freed gives the room of a request back.
func (q *queue) freed(p *pending) {
	q.count--
	q.bytes -= len(p.request.Raw())
}

// verdict is what becomes of a request that comes, or whose turn it is.
type verdict uint8

const (
	nothing  verdict = iota
	goes             // to the server
	waits            // for its turn
	known            // needs no answer of the server: what it asks for is so already
	overfull         // there is no room for it to wait
	refused          // the client may not ask for it
)

// admitLocked decides what becomes of a request in the table. One that does not
// go and does not wait has been taken out again.
func (s *Session) admitLocked(p *pending) verdict {
	if !s.mustWaitLocked(p) {
		return goes
	}
	if !s.queue.takes(p, s.opts.MaxWaiting) {
		s.removeLocked(p)
		return overfull
	}
	s.queue.list = append(s.queue.list, p)
	return waits
}

// mustWaitLocked reports whether a request has to wait: for its turn, or for the
// server to show that it lives.
func (s *Session) mustWaitLocked(p *pending) bool {
	return len(s.queue.list) > 0 || !s.roomLocked()
}

// roomLocked reports whether the server can be given one more request.
func (s *Session) roomLocked() bool {
	return (s.opts.MaxInFlight <= 0 || s.inFlight < s.opts.MaxInFlight) && !s.holdsLocked()
}

// moreLocked reports whether next has anything to do.
func (s *Session) moreLocked() bool {
	return len(s.queue.list) > 0 || len(s.lanes.ready) > 0 || s.hang.on
}

// next sends what has waited: the requests whose turn it is, and the ping to a
// server that is suspected to hang.
func (s *Session) next() {
	for {
		s.mu.Lock()
		p, v := s.nextLocked()
		var m *jsonrpc.Message
		if v == goes {
			m = s.sentLocked(p)
		}
		s.mu.Unlock()
		if p == nil {
			return
		}
		if s.act(p, v, m) != nil { // it waited in a session that has ended
			s.lost(p, m, ReasonError("the session with the server was lost", "session_lost", true))
		}
	}
}

func (s *Session) nextLocked() (*pending, verdict) {
	if s.err != nil {
		return nil, nothing
	}
	if p, v := s.nextInLaneLocked(); p != nil {
		return p, v
	}
	if len(s.queue.list) > 0 && s.roomLocked() {
		p := s.queue.list[0]
		s.queue.list[0] = nil
		s.queue.list = s.queue.list[1:]
		s.queue.freed(p)
		return p, goes
	}
	return s.pingLocked()
}

// refusal is the error of a request that a shared session does not take.
func refusal(p *pending) *jsonrpc.Error {
	if p.method == methodSubscribe {
		return ReasonError(fmt.Sprintf("the client has %d subscriptions", maxSubscriptions), "too_many_subscriptions", false)
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no such task")
}

// act does what has been decided about a request. It fails with ErrOver when the
// request could not be sent because the session is over.
func (s *Session) act(p *pending, v verdict, m *jsonrpc.Message) error {
	switch v {
	case goes:
		return s.send(p, m)
	case waits:
		s.opts.Metrics.RequestWaits()
	case known:
		s.finish(p, jsonrpc.NewResult(p.client, []byte("{}")), "")
	case overfull:
		s.opts.Metrics.QueueFull()
		why := fmt.Sprintf("over %d requests, or %d MiB of them, wait for the server", s.opts.MaxWaiting, waitBytes>>20)
		s.fail(p, ReasonError(why, "queue_full", true), metrics.ErrorBusy)
	case refused:
		e := refusal(p)
		s.fail(p, e, strconv.Itoa(e.Code))
	}
	return nil
}
