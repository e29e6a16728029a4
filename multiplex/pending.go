package multiplex

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxAbandoned bounds how many requests are remembered as given up.
	maxAbandoned = 1024
	// maxKept bounds a request that is kept to be made again, in bytes, and
	// maxKeptBytes all of a session's.
	maxKept      = 64 << 10
	maxKeptBytes = 8 << 20
)

// pending is a request that the server has not answered. Guarded by Session.mu
// until it is taken out of the table; then it belongs to who did that.
type pending struct {
	timed
	id      int64 // on the wire
	method  string
	started time.Duration // since Session.epoch
	// port and client, the id that the client gave it, are set for what is done
	// in the name of a client; reply for what the gateway itself waits for.
	// Neither is set for what nobody waits for.
	port       *Port
	client     jsonrpc.ID
	reply      chan outcome
	prev, next *pending // of the same port

	// token is the client's progress token, nil for none; it stood at place.
	token    json.RawMessage
	tokenBuf [24]byte // holds it when it is as short as usual
	place    jsonrpc.Place

	// request is there while it waits, and as long as it may be made again.
	request *jsonrpc.Message
	lane    *lane  // of the requests that go one after the other; nil for most
	task    string // that the request is about; empty for most
	uri     string // that it subscribes to, or no longer does; empty for most
	// level is what the client wants of logging/setLevel, and tells what the
	// server gets.
	level, tells int8

	canceled   bool // the client has taken it back
	sent       bool // the server has it
	counted    bool // among those that MaxInFlight bounds
	safe       bool // to make again
	more       bool // a page of a list that is not the first
	progressed bool // the server has reported progress
}

// outcome is what a call of the gateway's own comes to.
type outcome struct {
	response *jsonrpc.Message
	err      error
}

// addLocked puts a request into the table. From then on whoever takes it out
// answers it.
func (s *Session) addLocked(p *pending) {
	s.nextID++
	p.id = s.nextID
	s.pending[p.id] = p
	if p.port != nil {
		p.port.link(p)
	}
}

// sentLocked notes that the server is given the request next, and returns it.
func (s *Session) sentLocked(p *pending) *jsonrpc.Message {
	m := p.request
	p.sent = true
	if s.out == 0 {
		s.hang.heard = s.now() - s.hang.silent // silence counts on from here
	}
	s.out++
	if p.counted {
		s.inFlight++
	}
	if blocks(p) {
		s.blocked++
	}
	size := len(m.Raw())
	if !p.safe || size > maxKept || s.kept+size > maxKeptBytes {
		p.request = nil
		return m
	}
	s.kept += size
	return m
}

// remove takes a request out of the table and reports whether it was there:
// whoever gets true answers it.
func (s *Session) remove(p *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeLocked(p)
}

func (s *Session) removeLocked(p *pending) bool {
	if s.pending[p.id] != p {
		return false
	}
	delete(s.pending, p.id)
	s.deadlines.drop(&p.timed)
	if p.port != nil {
		p.port.unlink(p)
	}
	if p.sent {
		s.out--
		if s.out == 0 {
			s.hang.silent = s.now() - s.hang.heard
		}
		if p.counted {
			s.inFlight--
		}
		if blocks(p) {
			s.blocked--
		}
		if p.request != nil {
			s.kept -= len(p.request.Raw())
		}
	} else {
		s.queue.leave(p)
	}
	s.leaveLaneLocked(p)
	if p == s.hang.ping {
		s.hang.ping = nil
	}
	return true
}

// probes reports whether the request is the ping to a server that may hang.
func (p *pending) probes() bool { return p.port == nil && p.reply == nil && p.method == methodPing }

// blocks reports whether the server may take its time with a request without
// being slow: the result of a task is answered when the task is over.
func blocks(p *pending) bool { return p.method == "tasks/result" }

// abandonLocked remembers that the server may still answer a request that has
// been taken out of the table.
func (s *Session) abandonLocked(id int64) {
	if s.abandoned == nil {
		s.abandoned = make(map[int64]struct{})
	}
	if len(s.abandoned) >= maxAbandoned {
		id = 0
	}
	s.abandoned[id] = struct{}{}
}

// openLocked returns the requests in the table in the order in which they came.
func (s *Session) openLocked() []*pending {
	open := make([]*pending, 0, len(s.pending))
	for _, p := range s.pending {
		open = append(open, p)
	}
	slices.SortFunc(open, func(a, b *pending) int { return int(a.id - b.id) })
	return open
}

// link and unlink keep the list of a port's requests. Guarded by Session.mu.
func (t *Port) link(p *pending) {
	p.next = t.requests
	if p.next != nil {
		p.next.prev = p
	}
	t.requests = p
}

func (t *Port) unlink(p *pending) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		t.requests = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
}

// findLocked returns the request that the client calls id.
func (t *Port) findLocked(id jsonrpc.ID) *pending {
	for p := t.requests; p != nil; p = p.next {
		if p.reply == nil && p.client == id {
			return p
		}
	}
	return nil
}
