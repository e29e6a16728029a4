package bridge

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
)

// hold waits until it is known whose initialize goes out, and returns its params:
// the client's own, or the synthetic ones when the client asks for something else or
// stays silent for the announce delay. It does not wait where that is known already,
// as after the loss of a session. While it waits it lends its turn to others.
func (s *start) hold(ctx context.Context, attempt *sessions.Attempt) (json.RawMessage, error) {
	s.mu.Lock()
	s.moveLocked(holding)
	silence := s.b.opts.AnnounceDelay - time.Since(s.b.c.Opened())
	held := !s.chosen.Load() && silence > 0
	s.mu.Unlock()
	if held {
		attempt.Lend()
		timer := time.NewTimer(silence)
		defer timer.Stop()
		for held {
			select {
			case <-timer.C:
				held = false
			case <-s.wake:
				held = !s.chosen.Load()
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	if err := attempt.Resume(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.chosen.Store(true)
	s.moveLocked(initializing)
	return s.params, nil
}

// choose sends the synthetic initialize for a request that needs the server, unless
// it is known already whose initialize goes out.
func (s *start) choose() {
	if s.chosen.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chosen.Store(true)
	if s.state == holding {
		s.startNowLocked()
	}
}

// plain reports whether the gateway does not initialize the next session.
func (s *start) plain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.params == nil
}
