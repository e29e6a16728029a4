package multiplex

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// ErrHung is the reason of a session whose server was silent for HangTimeout
// while it had requests to answer, and then did not answer two pings.
var ErrHung = errors.New("the server hangs")

const (
	// pingTimeout is how long a ping may take.
	pingTimeout = 5 * time.Second
	// maxMissed is how many in a row must be missed.
	maxMissed = 2
)

// suspicion is what is held against a server. Guarded by Session.mu.
//
// One that is silent may just be at work. So it is suspected only when a request
// had to be given up; it is asked when it has nothing to do, never while calls
// run; and whatever it says clears it.
type suspicion struct {
	// heard is when the server last said something. What it was silent for without
	// anything to do does not count: silent is what counted when it last had
	// something, and heard is moved on when it has again.
	heard  time.Duration
	silent time.Duration
	on     bool
	missed int
	ping   *pending // nil: none under way
}

// heardLocked notes that the server has said something. It reports whether that
// clears a suspicion; the caller then calls cleared.
func (s *Session) heardLocked() bool {
	h := &s.hang
	h.heard, h.silent = s.now(), 0
	if !h.on {
		return false
	}
	h.on, h.missed = false, 0
	return true
}

// heard is heardLocked and cleared.
func (s *Session) heard() {
	s.mu.Lock()
	cleared := s.heardLocked()
	s.mu.Unlock()
	if cleared {
		s.cleared()
	}
}

// cleared sends what has waited while the server was suspected.
func (s *Session) cleared() {
	s.opts.Metrics.HangCleared()
	s.opts.Logger.Info("server is alive")
	s.next()
}

// suspectLocked is called when a request that the server has is given up, and
// reports whether the server is suspected from now on.
func (s *Session) suspectLocked() bool {
	h := &s.hang
	if s.opts.HangTimeout <= 0 || h.on || s.err != nil || s.now()-h.heard < s.opts.HangTimeout {
		return false
	}
	h.on = true
	return true
}

// holdsLocked reports whether requests wait until it is clear whether the server
// lives: so it comes to have nothing to do, and can be asked. While a request is
// out that may take any time, that would take too long.
func (s *Session) holdsLocked() bool { return s.hang.on && s.blocked == 0 }

// pingLocked makes the ping to a server that is suspected, when it is time.
func (s *Session) pingLocked() (*pending, verdict) {
	h := &s.hang
	if !h.on || h.ping != nil || s.out > 0 {
		return nil, nothing
	}
	m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", methodPing, nil))
	if err != nil { // it is valid
		return nil, nothing
	}
	p := &pending{method: methodPing, started: s.now(), request: m}
	s.addLocked(p)
	s.deadlineLocked(&p.timed, p, p.started+pingTimeout)
	h.ping = p
	return p, goes
}

// pingMissedLocked notes a ping without an answer, and reports whether the server
// is given up.
func (s *Session) pingMissedLocked() bool {
	h := &s.hang
	if !h.on {
		return false
	}
	h.missed++
	return h.missed >= maxMissed
}

// hung ends the session.
func (s *Session) hung() {
	s.opts.Metrics.Hung()
	s.opts.Logger.Warn("server hangs")
	s.Close(fmt.Errorf("%w: no answer to anything for %s, nor to %d pings", ErrHung, s.opts.HangTimeout, maxMissed))
}
