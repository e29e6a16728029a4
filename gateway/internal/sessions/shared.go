package sessions

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// shared holds the slots of the shared sessions. A slot starts its session when the
// first connection needs it, and again after a loss. All connections that wait share
// one start.
type shared struct {
	supplier *Supplier
	mu       sync.Mutex // guards what follows
	slots    []*slot
	closed   bool
}

// slot holds one shared session or none.
type slot struct {
	of *shared

	// Guarded by shared.mu.
	session  *Session         // or nil
	members  map[*Member]bool // of session
	joining  int              // calls of Join that wait for the session
	starting *slotStart       // the running start, or nil
	replaces bool             // the next session replaces a lost one
	backoff  *backoff.Backoff // nil: no start has failed since a session proved itself
	notYet   time.Time        // no start before this time
}

// Member is a connection's membership in a shared session. It ends with Leave or with
// the session. Its methods are safe for concurrent use.
type Member struct {
	// Session is the shared session.
	Session *Session
	slot    *slot
	lost    func(err error)
}

// slotStart is one start of a shared session. All connections that need the session
// wait for it.
type slotStart struct {
	done    chan struct{} // closed at its end
	session *Session      // set, like err, before done is closed
	err     error
}

func newShared(s *Supplier, size int) *shared {
	all := &shared{supplier: s}
	for range size {
		all.slots = append(all.slots, &slot{of: all, members: make(map[*Member]bool)})
	}
	return all
}

// start starts all sessions before a connection needs them. It does not wait.
func (s *shared) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, slot := range s.slots {
		if slot.session == nil {
			slot.openLocked()
		}
	}
}

// Join makes the caller a member of the shared session with the fewest members, and
// waits until that has started. The slot calls lost at the loss of the session,
// possibly before Join returns; lost must not block. The error is a
// *handshake.Failure.
func (s *Supplier) Join(ctx context.Context, lost func(err error)) (*Member, error) {
	all := s.shared
	all.mu.Lock()
	slot := all.leastLocked()
	slot.joining++
	all.mu.Unlock()
	defer func() {
		all.mu.Lock()
		slot.joining--
		all.mu.Unlock()
	}()
	for {
		session, err := slot.get(ctx)
		if err != nil {
			return nil, err
		}
		m := &Member{Session: session, slot: slot, lost: lost}
		if slot.add(m) {
			return m, nil
		}
	}
}

func (s *shared) leastLocked() *slot {
	least := s.slots[0]
	for _, slot := range s.slots[1:] {
		if len(slot.members)+slot.joining < len(least.members)+least.joining {
			least = slot
		}
	}
	return least
}

// get returns the session, and waits for its start if there is none.
func (s *slot) get(ctx context.Context) (*Session, error) {
	s.of.mu.Lock()
	if s.session != nil {
		defer s.of.mu.Unlock()
		return s.session, nil
	}
	o := s.openLocked()
	s.of.mu.Unlock()
	select {
	case <-o.done:
		return o.session, o.err
	case <-ctx.Done():
		return nil, creationFailure(reasonOf(ctx.Err()), "the caller stopped waiting for the start", ctx.Err())
	}
}

// add adds a member. It reports false if its session is lost already.
func (s *slot) add(m *Member) bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.session != m.Session {
		return false
	}
	s.members[m] = true
	return true
}

// openLocked returns the running start, which it begins if there is none.
func (s *slot) openLocked() *slotStart {
	if s.starting == nil {
		o := &slotStart{done: make(chan struct{})}
		s.starting = o
		wait := max(0, time.Until(s.notYet))
		s.of.supplier.Go(func() { s.open(o, wait) }) // ends with the start, or with the supplier
	}
	return s.starting
}

// open starts the session after wait, and ends o with the result.
func (s *slot) open(o *slotStart, wait time.Duration) {
	began := time.Now().Add(wait)
	o.session, o.err = s.startAfter(wait)
	s.of.supplier.reportShared(o.session, o.err, time.Since(began))
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.starting = nil
	defer close(o.done)
	switch {
	case o.err != nil:
		s.delayLocked()
		return
	case s.of.closed:
		o.session.End(errNotNeeded)
		return
	}
	s.session = o.session
	if s.replaces {
		s.replaces = false
		s.of.supplier.metrics.SessionRestarted()
	}
	if !o.session.Own(func(err error) { s.lose(o.session, err) }) {
		s.session = nil // it is over; Join starts another
		s.delayLocked()
	}
}

// startAfter waits, and starts a session. It counts a start that takes longer than
// InitializationTimeout as late.
func (s *slot) startAfter(wait time.Duration) (*Session, error) {
	supplier := s.of.supplier
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-supplier.life.Done():
		}
	}
	limit := supplier.opts.InitializationTimeout
	defer time.AfterFunc(limit, func() {
		supplier.metrics.HandshakeDone(metrics.HandshakeError, metrics.PhaseRequestProcessing, metrics.ReasonTimeout, limit)
	}).Stop()
	return supplier.open(supplier.life)
}

// reportShared reports the result of the start of a shared session to log and
// metrics, once for all waiting connections.
func (s *Supplier) reportShared(session *Session, err error, took time.Duration) {
	failure, failed := errors.AsType[*handshake.Failure](err)
	switch {
	case err == nil:
		s.metrics.HandshakeDone(metrics.HandshakeOK, "", "", took)
		s.NoteStart()
		s.log.Info("shared session started", append(session.ServerAttrs(), "duration", took)...)
	case abandoned(err) || !failed:
		s.metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", took)
	default:
		s.metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, took)
		level, attrs := s.NoteFailure(failure, false, "phase", string(failure.Phase), "reason", failure.Reason, "duration", took)
		s.log.Log(context.Background(), level, "shared session start failed", attrs...)
	}
}

// delayLocked sets the time of the next start.
func (s *slot) delayLocked() {
	if s.backoff == nil {
		s.backoff = NewBackoff()
	}
	s.notYet = time.Now().Add(s.backoff.Next())
}

// lose empties the slot after the loss of its session, and calls the members. It
// reports whether session was that of the slot; a second call reports false.
func (s *slot) lose(session *Session, err error) bool {
	supplier := s.of.supplier
	s.of.mu.Lock()
	if s.session != session {
		s.of.mu.Unlock()
		return false
	}
	members := s.members
	s.session, s.members, s.replaces = nil, make(map[*Member]bool), true
	if session.Proven() {
		s.backoff = nil
	} else {
		s.delayLocked()
		failure := EndedSoon(err)
		supplier.metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, session.Age())
	}
	s.of.mu.Unlock()
	supplier.log.Warn("shared session lost", "connections", len(members), "duration", session.Age(), "err", err)
	for m := range members {
		m.lost(err)
	}
	return true
}

// Replace ends a session that takes no messages. It informs all members of the loss,
// unless that is done.
func (m *Member) Replace() {
	if m.slot.lose(m.Session, ErrTakesNoMore) {
		m.Session.Retire(nil)
	}
}

// Current reports whether the session is still that of its slot. A session that was
// replaced ends later.
func (m *Member) Current() bool {
	m.slot.of.mu.Lock()
	defer m.slot.of.mu.Unlock()
	return m.slot.session == m.Session
}

// Leave ends the membership; the session goes on.
func (m *Member) Leave() {
	m.slot.of.mu.Lock()
	defer m.slot.of.mu.Unlock()
	delete(m.slot.members, m)
}

// close ends the sessions, and any that still starts.
func (s *shared) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, slot := range s.slots {
		if slot.session != nil {
			slot.session.End(errNotNeeded)
			slot.session = nil
		}
	}
}
