package streamable

import (
	"cmp"
	"container/list"
	"sync"
	"time"
)

// EventID is the number of an event in a stream of a session. A session's own stream is
// number 0, those of its POSTs follow; the events of each count from 1.
type EventID struct {
	Stream, Number int64
}

// StoredEvent is an event that an EventStore keeps.
type StoredEvent struct {
	EventID
	// Data is a JSON-RPC message. Nobody changes its bytes.
	Data []byte
}

// EventStore keeps the events of streams, for clients that were cut and come back. It
// bounds what it keeps by itself. Its methods are called concurrently, and must not block.
type EventStore interface {
	// Append keeps an event of a session.
	Append(session string, e StoredEvent)
	// After returns the events that it keeps of the stream of after, with higher numbers,
	// in order.
	After(session string, after EventID) []StoredEvent
	// Forget drops all events of a session, which is over.
	Forget(session string)
}

// noStore keeps nothing.
type noStore struct{}

func (noStore) Append(string, StoredEvent)          {}
func (noStore) After(string, EventID) []StoredEvent { return nil }
func (noStore) Forget(string)                       {}

// MemoryLimits bound a MemoryStore. The zero value gives the defaults.
type MemoryLimits struct {
	// MaxEvents bounds the events. Default 100,000.
	MaxEvents int
	// MaxBytes bounds the bytes of all events, each of which counts for 256 more. Default
	// 64 MiB.
	MaxBytes int
	// MaxAge bounds how long an event is kept. Default 5 min.
	MaxAge time.Duration
}

// MemoryStore is an EventStore in memory: it drops the oldest events over its limits. It
// is safe for concurrent use.
type MemoryStore struct {
	limits MemoryLimits

	mu       sync.Mutex // guards what follows
	events   list.List  // of *keptEvent, oldest first
	bytes    int
	sessions map[string][]*keptEvent // oldest first
	timer    *time.Timer             // drops the oldest events that are too old; nil: there are none
}

// keptEvent is an event in a MemoryStore.
type keptEvent struct {
	StoredEvent
	at      time.Time
	session string
	place   *list.Element // in MemoryStore.events
}

// eventCost is what an event counts for beside its data, in bytes.
const eventCost = 256

// NewMemoryStore returns an empty store. It needs no end: its timer stops when it is
// empty.
func NewMemoryStore(limits MemoryLimits) *MemoryStore {
	limits.MaxEvents = cmp.Or(limits.MaxEvents, 100_000)
	limits.MaxBytes = cmp.Or(limits.MaxBytes, 64<<20)
	limits.MaxAge = cmp.Or(limits.MaxAge, 5*time.Minute)
	return &MemoryStore{limits: limits, sessions: make(map[string][]*keptEvent)}
}

// Append implements EventStore.
func (m *MemoryStore) Append(session string, e StoredEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := &keptEvent{StoredEvent: e, at: time.Now(), session: session}
	m.sessions[session] = append(m.sessions[session], k)
	k.place = m.events.PushBack(k)
	m.bytes += len(e.Data) + eventCost
	for m.events.Len() > m.limits.MaxEvents || m.bytes > m.limits.MaxBytes && m.events.Len() > 1 {
		m.dropOldestLocked()
	}
	if m.timer == nil {
		m.timer = time.AfterFunc(m.limits.MaxAge, m.dropOld)
	}
}

// dropOldestLocked drops the oldest event of all.
func (m *MemoryStore) dropOldestLocked() {
	k := m.events.Remove(m.events.Front()).(*keptEvent)
	m.bytes -= len(k.Data) + eventCost
	kept := m.sessions[k.session] // k is its first
	if kept[0] = nil; len(kept) == 1 {
		delete(m.sessions, k.session)
		return
	}
	m.sessions[k.session] = kept[1:]
}

// dropOld drops the events that are too old.
func (m *MemoryStore) dropOld() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timer = nil
	for m.events.Len() > 0 {
		left := m.limits.MaxAge - time.Since(m.events.Front().Value.(*keptEvent).at)
		if left > 0 {
			m.timer = time.AfterFunc(left, m.dropOld)
			return
		}
		m.dropOldestLocked()
	}
}

// After implements EventStore.
func (m *MemoryStore) After(session string, after EventID) (events []StoredEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.sessions[session] {
		if k.Stream == after.Stream && k.Number > after.Number {
			events = append(events, k.StoredEvent)
		}
	}
	return events
}

// Forget implements EventStore.
func (m *MemoryStore) Forget(session string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.sessions[session] {
		m.events.Remove(k.place)
		m.bytes -= len(k.Data) + eventCost
	}
	delete(m.sessions, session)
}
