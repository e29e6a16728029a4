package streamable

import (
	"container/list"
	"slices"
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

// storeTime bounds how long a store keeps an event.
const storeTime = 5 * time.Minute

// An event counts for more bytes than its data.
const (
	eventCost  = 256  // of each event
	answerCost = 1024 // of an event that answers a request, with all that its stream holds
)

// store keeps the events of streams, for clients that were cut and come back. It drops the
// oldest events over limit bytes, of one session over an eighth of them, so that it does not
// drop the events of all others. It needs no end: its timer stops when it is empty.
type store struct {
	limit int
	count func(n int) // counts n more bytes, or -n fewer

	mu     sync.Mutex // guards what follows, and kept and keptBytes of the sessions
	events list.List  // of *storedEvent, oldest first
	bytes  int
	timer  *time.Timer // drops the oldest events that are too old; nil: there are none
}

// storedEvent is an event in a store.
type storedEvent struct {
	event
	at      time.Time
	session *streamSession
	place   *list.Element // in store.events
}

func (e *storedEvent) cost() int {
	if e.answers == "" {
		return len(e.data) + eventCost
	}
	return len(e.data) + eventCost + answerCost + 3*len(e.answers) // it is in the ids of events too
}

// addEvent keeps an event of a session.
func (m *store) addEvent(s *streamSession, e event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := &storedEvent{event: e, at: time.Now(), session: s}
	k.place = m.events.PushBack(k)
	s.kept = append(s.kept, k)
	s.keptBytes += k.cost()
	m.bytes += k.cost()
	m.count(k.cost())
	for s.keptBytes > m.limit/8 && len(s.kept) > 1 {
		m.dropFirstLocked(s)
	}
	for m.bytes > m.limit && m.events.Len() > 1 {
		m.dropFirstLocked(m.events.Front().Value.(*storedEvent).session)
	}
	if m.timer == nil {
		m.timer = time.AfterFunc(storeTime, m.dropOld)
	}
}

func (m *store) dropFirstLocked(s *streamSession) {
	k := s.kept[0]
	s.kept[0] = nil
	s.kept = s.kept[1:]
	m.removeLocked(k)
}

// removeLocked takes an event from all but the kept of its session.
func (m *store) removeLocked(k *storedEvent) {
	m.events.Remove(k.place)
	m.bytes -= k.cost()
	k.session.keptBytes -= k.cost()
	m.count(-k.cost())
}

// dropOld drops the events that are too old, and then the streams that have none left.
func (m *store) dropOld() {
	for s := range m.dropOldEvents() {
		s.mu.Lock()
		s.tidyLocked()
		s.mu.Unlock()
	}
}

func (m *store) dropOldEvents() map[*streamSession]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timer = nil
	poorer := make(map[*streamSession]bool)
	for m.events.Len() > 0 {
		oldest := m.events.Front().Value.(*storedEvent)
		if left := storeTime - time.Since(oldest.at); left > 0 {
			m.timer = time.AfterFunc(left, m.dropOld)
			break
		}
		poorer[oldest.session] = true
		m.dropFirstLocked(oldest.session)
	}
	return poorer
}

// dropEndedStreams drops the events of streams that a session no longer has, and returns the numbers of
// those that have events. The caller holds the session's lock.
func (m *store) dropEndedStreams(s *streamSession) map[int64]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := make(map[int64]bool)
	s.kept = slices.DeleteFunc(s.kept, func(k *storedEvent) bool {
		if s.streams[k.stream] == nil {
			m.removeLocked(k)
			return true
		}
		kept[k.stream] = true
		return false
	})
	return kept
}

// after returns the events that it keeps of the stream of id, with higher numbers, in order.
func (m *store) after(s *streamSession, id eventID) (events []event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range s.kept {
		if k.stream == id.stream && k.number > id.number {
			events = append(events, k.event)
		}
	}
	return events
}

func (m *store) forget(s *streamSession) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(s.kept) > 0 {
		m.dropFirstLocked(s)
	}
}
