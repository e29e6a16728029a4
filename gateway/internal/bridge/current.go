package bridge

import (
	"context"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
)

// takeIntoUse makes a the current session, unless its attempt is superseded: it
// announces the session, answers waiting initialize requests, restores the client's
// state and opens the gate. It reports whether run may end.
func (s *start) takeIntoUse(a *attachment) bool {
	s.mu.Lock()
	if s.supersededLocked() {
		s.mu.Unlock()
		a.leave(errGone)
		return false
	}
	again, replaces := s.served, s.lost
	s.moveLocked(taking)
	s.served, s.lost, s.failure = true, false, nil
	s.current.Store(a)
	s.clearWakeLocked() // the signal was for this attempt
	waiting := s.takeWaitingLocked()
	s.mu.Unlock()

	s.b.greet(a, waiting, !again)
	a.client.deliverEarly()
	if replaces && !s.b.shares() { // the supplier counts the loss of a shared session, once
		s.b.opts.Metrics.SessionRestarted()
	}
	if again {
		s.b.memory.restore(a, s.b.limited())
	}
	if release := s.open(a); release != nil {
		release(s.b.send)
		if replaces {
			s.b.notifyListsChanged(a)
		}
	}
	return s.settle(a)
}

// open opens the gate for a session and returns the function that releases the
// messages in it. It returns nil if the session is lost or replaced already, or the
// connection drains.
func (s *start) open(a *attachment) (release func(func(*connstate.Request) bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Load() != a {
		return nil
	}
	release, _ = s.b.c.Open() // nil if draining or closed
	return release
}

// settle moves to serving. It reports whether run may end: false if the session is
// lost or replaced already.
func (s *start) settle(a *attachment) bool {
	if s.b.over() && s.current.CompareAndSwap(a, nil) { // closed meanwhile
		a.leave(errGone)
	}
	s.b.dismiss(a.Err())
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.b.over(): // close, or the lines above, leave the session
		s.moveLocked(over)
		return true
	case s.current.Load() == a && a.Err() == nil && (a.member == nil || a.member.Current()):
		s.moveLocked(serving)
		return true
	}
	s.loseLocked(a, a.Err())
	return false
}

// lose handles the loss of a session; the session answers or repeats its requests
// after it. It reports whether a was the current session; a second call reports
// false.
func (s *start) lose(a *attachment, err error) (lost bool) {
	if s.current.Load() == a {
		s.b.dismiss(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lost, wanted := s.loseLocked(a, err)
	switch {
	case wanted && !s.state.running():
		s.relaunchLocked()
	case lost && !wanted && !s.state.running():
		s.moveLocked(over)
	}
	return lost
}

// loseLocked closes the gate after the loss of the current session. It reports
// whether a was that session, and whether the connection needs another one.
func (s *start) loseLocked(a *attachment, err error) (lost, wanted bool) {
	b := s.b
	if b.over() || s.current.Load() != a {
		return false, false
	}
	// Close the gate first: a message that finds no session must find the gate closed
	// when it returns.
	shut := b.c.State() == connstate.Initializing || b.c.Move(connstate.Initializing) == nil
	if !s.current.CompareAndSwap(a, nil) {
		return false, false // closed meanwhile
	}
	if !shut {
		return true, false // draining: no other session follows
	}
	s.lost = true
	if a.member == nil { // the supplier logs the loss of a shared session, once
		level, attrs := a.LossAttrs(err)
		b.limited().Log(context.Background(), level, "session lost", attrs...)
	}
	if a.member != nil || a.Proven() {
		s.attempts, s.backoff = 0, nil
	} else {
		s.unproven = err
		s.drawPauseLocked()
		b.countFailure(sessions.EndedSoon(err), a.Age())
	}
	return true, true
}
