package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// established takes a session into use and reports whether it is still usable.
func (s *start) established(l *link) bool {
	s.mu.Lock()
	if s.supersededLocked() { // after all
		s.mu.Unlock()
		s.b.discard(l)
		return false
	}
	again, replaces := s.served, s.lost
	s.moveLocked(taking)
	s.served, s.lost, s.failure = true, false, nil
	s.current.Store(l)
	s.drainWakeLocked() // it was for this start
	waiting := s.takeWaitingLocked()
	s.mu.Unlock()

	s.b.greet(l, waiting, !again)
	l.client.use()
	if replaces && s.b.g.shared == nil { // the loss of a shared one is counted once, where that is
		s.b.g.metrics.SessionRestarted()
	}
	if again {
		s.b.memory.restore(l, s.b.log())
	}
	if release := s.open(l); release != nil {
		release(s.b.sent)
		if replaces {
			s.b.tellListChanged(l)
		}
	}
	return s.settle(l)
}

// open opens the gate for a session, unless that is lost or replaced already, or
// the connection will not be ready any more. It returns what releases the
// messages that wait.
func (s *start) open(l *link) (release func(func(*jsonrpc.Message) bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Load() != l {
		return nil
	}
	release, _ = s.b.c.Open() // draining or closed: nil
	return release
}

// settle ends run, unless the session it got is lost already or no longer wanted.
func (s *start) settle(l *link) bool {
	if s.b.over() && s.current.CompareAndSwap(l, nil) { // closed while we took it into use
		s.b.leave(l, errGone)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.b.over(): // from here on close has found it
		s.moveLocked(over)
		return true
	case s.current.Load() == l && l.Err() == nil:
		s.moveLocked(serving)
		return true
	}
	s.loseLocked(l, l.Err())
	return false
}

// lose is called when a session is over, before its requests are answered. It
// reports whether l was the current session; a second call reports false.
func (s *start) lose(l *link, err error) (lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost, wanted := s.loseLocked(l, err)
	switch {
	case wanted && !s.state.running():
		s.relaunchLocked()
	case lost && !wanted && !s.state.running():
		s.moveLocked(over)
	}
	return lost
}

// logLoss logs the loss of a session. That of one that was of no use repeats like a
// start that fails.
func (b *bridge) logLoss(l *link, err error) {
	level, attrs := slog.LevelWarn, []any{"err", err}
	if !l.proven() {
		level, attrs = b.g.startLog.failed(endedSoon(err), false)
	}
	b.log().Log(context.Background(), level, "session lost", append([]any{"duration", time.Since(l.since)}, attrs...)...)
}

// loseLocked closes the gate after the loss of the current session. It reports
// whether l was that session, and whether the connection wants another one.
func (s *start) loseLocked(l *link, err error) (lost, wanted bool) {
	b := s.b
	if b.over() || s.current.Load() != l {
		return false, false
	}
	// The gate first: a message that finds no session behind it must find the gate
	// shut the next time.
	shut := b.c.State() == connstate.Initializing || b.c.Move(connstate.Initializing) == nil
	if !s.current.CompareAndSwap(l, nil) {
		return false, false // closed meanwhile
	}
	if !shut {
		return true, false // draining: there will be no other
	}
	s.lost = true
	if l.place == nil { // the loss of a shared one is logged once, where that is
		b.logLoss(l, err)
	}
	if l.place != nil || l.proven() {
		s.attempts, s.backoff = 0, nil
	} else {
		s.unproven = err
		s.drawLocked()
		b.count(endedSoon(err), time.Since(l.since))
	}
	return true, true
}
