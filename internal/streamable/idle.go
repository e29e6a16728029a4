package streamable

import (
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/idle"
)

// evictAfter is how long a session must be idle to make room for another one.
const evictAfter = 10 * time.Second

// idleSessions are the sessions that no HTTP request uses. Guarded by Handler.mu.
type idleSessions struct {
	unused, used idle.List[*streamSession] // those whose client has never used their id again, and the others
}

// releaseRequest takes a request from a session. It reports whether it was the last one of a session that
// is over.
func (l *idleSessions) releaseRequest(s *streamSession) (last bool) {
	_, used := s.allowed()
	if used {
		return l.used.Leave(s, &s.use)
	}
	return l.unused.Leave(s, &s.use)
}

// longest returns the session that has been idle longest, for evictAfter at least, one that
// its client has never used again before others; nil if none is found. One that no request uses may
// be busy: its client has left a request that runs, or its answer came late.
func (l *idleSessions) longest() *streamSession {
	for _, among := range []*idle.List[*streamSession]{&l.unused, &l.used} {
		s, found := among.Longest(func(s *streamSession) bool { idle, _ := s.idleLocked(); return idle >= evictAfter })
		if found {
			return s
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
		victim.use.End() // the next one closes another
	}
	h.mu.Unlock()
	return victim != nil && victim.c.Close(connstate.ClosedIdle)
}
