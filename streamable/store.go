package streamable

import (
	"container/list"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// event is a message on a stream.
type event struct {
	eventID
	data    []byte
	answers jsonrpc.ID // the request that it answers; empty if it is no answer
}

// Bounds of a store. One session has at most an eighth of the bytes, so that it does not
// drop the events of all others.
const (
	storeBytes   = 64 << 20
	sessionBytes = storeBytes / 8
	storeTime    = 5 * time.Minute
	eventCost    = 256 // that an event counts for beside its data, in bytes
)

// store keeps the events of streams, for clients that were cut and come back. It drops the
// oldest events over its bounds. It needs no end: its timer stops when it is empty.
type store struct {
	mu     sync.Mutex // guards what follows, and kept and keptBytes of the sessions
	events list.List  // of *storedEvent, oldest first
	bytes  int
	timer  *time.Timer // drops the oldest events that are too old; nil: there are none
}

// storedEvent is an event in a store.
type storedEvent struct {
	event
	at      time.Time
	session *session
	place   *list.Element // in store.events
}

func (e *storedEvent) cost() int { return len(e.data) + eventCost }

// add keeps an event of a session.
func (m *store) add(s *session, e event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := &storedEvent{event: e, at: time.Now(), session: s}
	k.place = m.events.PushBack(k)
	s.kept = append(s.kept, k)
	s.keptBytes += k.cost()
	m.bytes += k.cost()
	for s.keptBytes > sessionBytes && len(s.kept) > 1 {
		m.dropFirstLocked(s)
	}
	for m.bytes > storeBytes && m.events.Len() > 1 {
		m.dropFirstLocked(m.events.Front().Value.(*storedEvent).session)
	}
	if m.timer == nil {
		m.timer = time.AfterFunc(storeTime, m.dropOld)
	}
}

func (m *store) dropFirstLocked(s *session) {
	k := s.kept[0]
	m.events.Remove(k.place)
	m.bytes -= k.cost()
	s.keptBytes -= k.cost()
	s.kept[0] = nil
	s.kept = s.kept[1:]
}

// dropOld drops the events that are too old.
func (m *store) dropOld() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timer = nil
	for m.events.Len() > 0 {
		oldest := m.events.Front().Value.(*storedEvent)
		if left := storeTime - time.Since(oldest.at); left > 0 {
			m.timer = time.AfterFunc(left, m.dropOld)
			return
		}
		m.dropFirstLocked(oldest.session)
	}
}

// after returns the events that it keeps of the stream of id, with higher numbers, in order.
func (m *store) after(s *session, id eventID) (events []event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range s.kept {
		if k.stream == id.stream && k.number > id.number {
			events = append(events, k.event)
		}
	}
	return events
}

func (m *store) forget(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(s.kept) > 0 {
		m.dropFirstLocked(s)
	}
}
