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

// shared are the sessions that all connections share: slots, each with one session
// or none. A session is started when the first connection needs it, by one start
// that every waiting connection shares, and again when it is lost.
type shared struct {
	supplier *Supplier
	mu       sync.Mutex // guards what follows
	slots    []*slot
	closed   bool
}

// slot holds one shared session.
type slot struct {
	of *shared

	// Guarded by shared.mu.
	session  *Session         // nil: there is none
	members  map[*Member]bool // of the session
	joining  int              // connections that are about to be members
	opening  *opening         // the start that runs; nil: none does
	replaces bool             // the next session replaces one that was lost
	backoff  *backoff.Backoff // nil: nothing has failed since a session proved itself
	notYet   time.Time        // no start before; after one that failed
}

// Member is a connection's membership in a shared session, which ends with Leave or
// with the session. Its methods are safe for concurrent use.
type Member struct {
	// Session is the shared one.
	Session *Session
	slot    *slot
	lost    func(err error)
}

// opening is one start, which every connection that needs the session waits for.
type opening struct {
	done    chan struct{} // closed when it is over
	session *Session      // set before done is closed, as err is
	err     error
}

func newShared(s *Supplier, size int) *shared {
	all := &shared{supplier: s}
	for range size {
		all.slots = append(all.slots, &slot{of: all, members: make(map[*Member]bool)})
	}
	return all
}

// start starts all sessions ahead of the connections that need them.
func (s *shared) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, slot := range s.slots {
		if slot.session == nil {
			slot.openLocked()
		}
	}
}

// Join makes the caller a member of the shared session that has the fewest, once
// that is there. lost is called when the session is lost, possibly before Join
// returns, and must not block. The error is a *handshake.Failure, or that of ctx.
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

// get waits for the session.
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
		return nil, creationFailure(reasonOf(ctx.Err()), "the start was not waited for", ctx.Err())
	}
}

// add adds a member of the session. It reports false when that is lost already.
func (s *slot) add(m *Member) bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.session != m.Session {
		return false
	}
	s.members[m] = true
	return true
}

// openLocked starts a session, unless one is being started.
func (s *slot) openLocked() *opening {
	if s.opening == nil {
		o := &opening{done: make(chan struct{})}
		s.opening = o
		wait := max(0, time.Until(s.notYet))
		s.of.supplier.Go(func() { s.open(o, wait) }) // ends with the start, or with the supplier
	}
	return s.opening
}

func (s *slot) open(o *opening, wait time.Duration) {
	began := time.Now().Add(wait)
	o.session, o.err = s.startAfter(wait)
	s.of.supplier.reportShared(o.session, o.err, time.Since(began))
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.opening = nil
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
		s.session = nil // a connection that waits starts another
		s.delayLocked()
	}
}

// startAfter waits, and starts a session. A start that takes long counts as late.
func (s *slot) startAfter(wait time.Duration) (*Session, error) {
	supplier := s.of.supplier
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-supplier.life.Done():
		}
	}
	supplier.metrics.HandshakeAttempt()
	limit := supplier.opts.InitializationTimeout
	defer time.AfterFunc(limit, func() {
		supplier.metrics.HandshakeDone(metrics.HandshakeError, metrics.PhaseRequestProcessing, metrics.ReasonTimeout, limit, "")
	}).Stop()
	return supplier.open(supplier.life)
}

// reportShared tells log and metrics how the start of a shared session went, once
// for all the connections that wait for it.
func (s *Supplier) reportShared(session *Session, err error, took time.Duration) {
	failure, failed := errors.AsType[*handshake.Failure](err)
	switch {
	case err == nil:
		s.metrics.HandshakeDone(metrics.HandshakeOK, "", "", took, "")
		s.NoteStart()
		s.log.Info("shared session started", append(session.ServerAttrs(), "duration", took)...)
	case abandoned(err) || !failed:
		s.metrics.HandshakeDone(metrics.HandshakeCanceled, "", "", took, "")
	default:
		s.metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, took, "")
		level, attrs := s.NoteFailure(failure, false, "phase", string(failure.Phase), "reason", failure.Reason, "duration", took)
		s.log.Log(context.Background(), level, "shared session start failed", attrs...)
	}
}

// delayLocked delays the next start.
func (s *slot) delayLocked() {
	if s.backoff == nil {
		s.backoff = NewBackoff()
	}
	s.notYet = time.Now().Add(s.backoff.Next())
}

// lose empties the slot when its session is lost, and tells the members. It reports
// whether it was the session of the slot; a second call reports false.
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
		supplier.metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, session.Age(), "")
	}
	s.of.mu.Unlock()
	supplier.log.Warn("shared session lost", "connections", len(members), "duration", session.Age(), "err", err)
	for m := range members {
		m.lost(err)
	}
	return true
}

// Replace ends a session that takes no more messages and tells its members that it
// is lost, unless that has been done.
func (m *Member) Replace() {
	if m.slot.lose(m.Session, ErrTakesNoMore) {
		m.Session.Retire(nil)
	}
}

// Leave ends the membership; the session goes on.
func (m *Member) Leave() {
	m.slot.of.mu.Lock()
	defer m.slot.of.mu.Unlock()
	delete(m.slot.members, m)
}

// close ends the sessions.
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
