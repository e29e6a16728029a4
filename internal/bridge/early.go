package bridge

import (
	"sync"
	"sync/atomic"
)

// maxEarlyBytes bounds the messages that a server sends before its session is in use.
const maxEarlyBytes = 64 << 10

// use is how far a session has come into use.
type use int32

// A session begins in keeping, and ends in inUse.
const (
	keeping use = iota // messages are kept
	asked              // messages are kept, and the server has asked something
	inUse              // messages pass at once; the client has those that were kept
)

// early keeps the messages of a server until its session is in use. A server may send messages as soon as it is
// initialized (roots/list is the usual one). Before the session is in use the client's answer could not reach
// it, and the client may still wait for the answer to its initialize. Make it with newEarly.
type early struct {
	use  atomic.Int32  // a use: noteQuestion moves it to asked, deliver to inUse
	asks chan struct{} // closed in asked

	mu sync.Mutex // serializes what comes before inUse, and guards what follows
	// kept are functions: each delivers one message that is kept. They are in the order of the messages. bytes is the
	// size of these messages.
	kept  []func()
	bytes int
}

func newEarly() *early { return &early{asks: make(chan struct{})} }

// isAt reports whether the session has come so far into use, and no further.
func (e *early) isAt(u use) bool { return use(e.use.Load()) == u }

// deliverOrKeep delivers a message of so many bytes, or keeps it until the session is in use. It reports false if it is
// dropped: there are over maxEarlyBytes.
func (e *early) deliverOrKeep(size int, deliver func()) bool {
	if !e.isAt(inUse) {
		if kept, isDropped := e.keep(size, deliver); kept || isDropped {
			return kept
		}
	}
	deliver()
	return true
}

// keep keeps a message, or says that it is dropped. It does neither if the session is in use, after the messages
// before have been delivered.
func (e *early) keep(size int, deliver func()) (kept, isDropped bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.isAt(inUse):
		return false, false
	case e.bytes+size > maxEarlyBytes:
		return false, true
	}
	e.kept = append(e.kept, deliver)
	e.bytes += size
	return true, false
}

// noteQuestion notes that the server has asked something.
func (e *early) noteQuestion() {
	if e.use.CompareAndSwap(int32(keeping), int32(asked)) {
		close(e.asks)
	}
}

// deliver puts the session in use: it delivers the messages kept so far, and later ones pass at once. While a slow
// client reads them, mu holds up only the reader of its own session, which would wait for that client anyway;
// nothing that is kept waits on a shared one, and the end of the session does not need mu.
func (e *early) deliver() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, deliver := range e.kept {
		deliver()
	}
	e.kept = nil
	e.use.Store(int32(inUse))
}
