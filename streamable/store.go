package streamable

import (
	"cmp"
	"container/list"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
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

	answers jsonrpc.ID // the request that it answers; empty if it is no answer
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
	// 64 MiB. One session has at most an eighth of them.
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
	sessions map[string]*keptSession
	timer    *time.Timer // drops the oldest events that are too old; nil: there are none
}

// keptEvent is an event in a MemoryStore.
type keptEvent struct {
	StoredEvent
	at      time.Time
	session string
	place   *list.Element // in MemoryStore.events
}

// keptSession is what a MemoryStore has of a session.
type keptSession struct {
	events []*keptEvent // oldest first
	bytes  int
}

// eventCost is what an event counts for beside its data, in bytes.
const eventCost = 256

// sessionShare is the part of MaxBytes that one session may have: a session with many
// events must not drop those of all others.
const sessionShare = 8

func (k *keptEvent) cost() int { return len(k.Data) + eventCost }

// NewMemoryStore returns an empty store. It needs no end: its timer stops when it is
// empty.
func NewMemoryStore(limits MemoryLimits) *MemoryStore {
	limits.MaxEvents = cmp.Or(limits.MaxEvents, 100_000)
	limits.MaxBytes = cmp.Or(limits.MaxBytes, 64<<20)
	limits.MaxAge = cmp.Or(limits.MaxAge, 5*time.Minute)
	return &MemoryStore{limits: limits, sessions: make(map[string]*keptSession)}
}

// Append implements EventStore.
func (m *MemoryStore) Append(session string, e StoredEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := m.sessions[session]
	if kept == nil {
		kept = &keptSession{}
		m.sessions[session] = kept
	}
	k := &keptEvent{StoredEvent: e, at: time.Now(), session: session}
	k.place = m.events.PushBack(k)
	kept.events = append(kept.events, k)
	kept.bytes += k.cost()
	m.bytes += k.cost()
	for kept.bytes > m.limits.MaxBytes/sessionShare && len(kept.events) > 1 {
		m.dropFirstLocked(kept.events[0])
	}
	for m.events.Len() > m.limits.MaxEvents || m.bytes > m.limits.MaxBytes && m.events.Len() > 1 {
		m.dropFirstLocked(m.events.Front().Value.(*keptEvent))
	}
	if m.timer == nil {
		m.timer = time.AfterFunc(m.limits.MaxAge, m.dropOld)
	}
}

// dropFirstLocked drops an event that is the first of its session.
func (m *MemoryStore) dropFirstLocked(k *keptEvent) {
	m.events.Remove(k.place)
	m.bytes -= k.cost()
	kept := m.sessions[k.session]
	kept.bytes -= k.cost()
	kept.events[0] = nil
	if kept.events = kept.events[1:]; len(kept.events) == 0 {
		delete(m.sessions, k.session)
	}
}

// dropOld drops the events that are too old.
func (m *MemoryStore) dropOld() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timer = nil
	for m.events.Len() > 0 {
		oldest := m.events.Front().Value.(*keptEvent)
		left := m.limits.MaxAge - time.Since(oldest.at)
		if left > 0 {
			m.timer = time.AfterFunc(left, m.dropOld)
			return
		}
		m.dropFirstLocked(oldest)
	}
}

// After implements EventStore.
func (m *MemoryStore) After(session string, after EventID) (events []StoredEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := m.sessions[session]
	if kept == nil {
		return nil
	}
	for _, k := range kept.events {
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
	kept := m.sessions[session]
	if kept == nil {
		return
	}
	for _, k := range kept.events {
		m.events.Remove(k.place)
	}
	m.bytes -= kept.bytes
	delete(m.sessions, session)
}
