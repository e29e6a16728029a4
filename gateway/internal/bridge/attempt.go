package bridge

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// attempt makes one attempt to get a session.
func (s *start) attempt() (*attachment, error) {
	ctx, cancel := context.WithCancel(s.b.forwarded(context.Background()))
	defer cancel()
	if err := s.beginAttempt(cancel); err != nil {
		return nil, err
	}
	s.b.c.SawAttempt()
	if !s.b.shares() {
		s.b.opts.Metrics.HandshakeAttempt()
	}
	began := time.Now()
	a, from, err := s.b.session(ctx)
	s.mu.Lock()
	s.cancel = nil
	s.late.Stop()
	attempt, told := s.attempts, s.told
	s.mu.Unlock()
	if ctx.Err() != nil && err != nil {
		s.b.countAbandoned(from, time.Since(began), told)
		return a, err
	}
	s.b.reportStart(a, err, from, attempt, time.Since(began))
	return a, err
}

// beginAttempt moves to reaching. cancel ends the attempt.
func (s *start) beginAttempt(cancel context.CancelFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moveLocked(reaching)
	s.cancel = cancel
	if s.b.over() {
		cancel() // close came before there was something to cancel
	}
	s.attempts++
	s.told, s.began = false, time.Now()
	attempt := s.began
	s.late = time.AfterFunc(s.b.opts.InitializationTimeout, func() { s.reportLate(attempt) })
	if s.b.c.State() == connstate.Initializing {
		return nil
	}
	err := s.b.c.Move(connstate.Initializing)
	if err != nil {
		s.cancel = nil
		s.late.Stop()
	}
	return err
}

// supersededLocked reports whether the client has come with other params after the
// initialize of this attempt went out. Such an attempt does not count.
func (s *start) supersededLocked() bool {
	if !s.again {
		return false
	}
	s.again = false
	s.attempts--
	return true
}

// session attaches the connection to a session that is initialized: to a shared one,
// or to one of its own. from names where the session comes from, for log and metrics.
func (b *Bridge) session(ctx context.Context) (a *attachment, from string, err error) {
	if b.shares() {
		a, err = b.join(ctx)
		return a, metrics.FromShared, err
	}
	attempt := b.opts.Supplier.NewAttempt()
	defer attempt.End()
	s, from, err := attempt.Take(ctx, b.takesAnyServer())
	if err != nil {
		return nil, from, err
	}
	a = b.own(s)
	if b.start.plain() {
		return a, from, nil
	}
	params, err := b.start.hold(ctx, attempt)
	if err != nil {
		b.giveBack(a)
		return nil, from, sessions.NotStarted(err)
	}
	if err := attempt.Initialize(ctx, s, params); err != nil {
		return nil, from, err
	}
	return a, from, nil
}

// forwarded adds to ctx what is handed on of the client's request.
func (b *Bridge) forwarded(ctx context.Context) context.Context {
	if header := b.c.Client().Header; len(header) > 0 {
		return upstream.WithHeader(ctx, header)
	}
	return ctx
}

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
		silent := time.After(silence)
		for held {
			select {
			case <-silent:
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
