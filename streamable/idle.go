package streamable

import (
	"container/list"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// evictAfter is how long a session must be idle to make room for another one.
const evictAfter = 10 * time.Second

// maxCandidates bounds the sessions that are looked at to make room, so that it costs the same
// however many there are.
const maxCandidates = 64

// idleSessions are the sessions that no HTTP request uses, in the order in which their last
// one ended. Guarded by Handler.mu.
type idleSessions struct {
	known, unknown list.List // those whose client has used their id again, and the others
}

// add appends a session, unless it is there.
func (l *idleSessions) add(s *session, known bool) {
	if s.place != nil {
		return
	}
	s.among = &l.unknown
	if known {
		s.among = &l.known
	}
	s.place = s.among.PushBack(s)
}

// remove takes a session out, if it is there.
func (l *idleSessions) remove(s *session) {
	if s.place != nil {
		s.among.Remove(s.place)
		s.place, s.among = nil, nil
	}
}

// longest returns the session that has been idle longest, for evictAfter at least, one that
// its client has never used again before others; nil if none is found. A session whose client has
// left a request that runs, or has ended late, goes to the end: many of those must not hide the
// others.
func (l *idleSessions) longest() *session {
	for _, among := range []*list.List{&l.unknown, &l.known} {
		for range min(maxCandidates, among.Len()) {
			first := among.Front()
			s := first.Value.(*session)
			if idle, _, _ := s.idle(); idle >= evictAfter {
				return s
			}
			among.MoveToBack(first)
		}
	}
	return nil
}

// evict closes the session that has been idle longest. It reports false if none has been idle
// for evictAfter.
func (h *Handler) evict() bool {
	h.mu.Lock()
	victim := h.idle.longest()
	if victim != nil {
		h.idle.remove(victim) // the next one closes another
	}
	h.mu.Unlock()
	return victim != nil && victim.c.Close(connstate.ClosedIdle)
}

// noteIdle notes that an HTTP request of a session has ended, which may have been the last.
func (h *Handler) noteIdle(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	idle, known := s.serving == 0 && !s.over, s.known
	s.mu.Unlock()
	if idle && h.sessions[s.c.Connection] == s {
		h.idle.add(s, known)
	}
}
