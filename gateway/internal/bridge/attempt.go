package bridge

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/internal/subnet"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// attempt makes one attempt to get a session.
func (s *start) attempt() (*attachment, error) {
	ctx, cancel := context.WithCancel(s.b.forwarded())
	defer cancel()
	if err := s.beginAttempt(cancel); err != nil {
		return nil, err
	}
	s.b.c.SawAttempt()
	began := time.Now()
	a, from, err := s.b.session(ctx)
	s.mu.Lock()
	s.cancel = nil
	s.endLateLocked()
	attempt, late := s.attempts, s.lateCounted
	s.mu.Unlock()
	if ctx.Err() != nil && err != nil {
		s.b.countAbandoned(from, time.Since(began), late)
		return a, err
	}
	s.b.reportStart(a, err, from, attempt, time.Since(began))
	return a, err
}

// beginAttempt moves to reaching and starts the timer of late starts. cancel ends the
// attempt. It fails if the connection drains or is closed.
func (s *start) beginAttempt(cancel context.CancelFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moveLocked(reaching)
	s.cancel = cancel
	if s.b.over() {
		cancel() // close found nothing to cancel
	}
	s.attempts++
	s.lateCounted, s.began = false, time.Now()
	attempt := s.began
	s.late = time.AfterFunc(s.b.opts.InitializationTimeout, func() { s.reportLate(attempt) })
	if s.b.c.State() == connstate.Initializing {
		return nil
	}
	err := s.b.c.Move(connstate.Initializing)
	if err != nil {
		s.cancel = nil
		s.endLateLocked()
	}
	return err
}

// endLateLocked ends the timer of late starts.
func (s *start) endLateLocked() {
	s.late.Stop()
	s.late = nil // idle connections are many
}

// supersededLocked reports whether the client sent other params after the initialize
// of this attempt. It then takes the attempt out of the count, and resets the mark.
func (s *start) supersededLocked() bool {
	if !s.superseded {
		return false
	}
	s.superseded = false
	s.attempts--
	return true
}

// session attaches the connection to an initialized session: a shared one, or its
// own. from names the source of the session, for log and metrics.
func (b *Bridge) session(ctx context.Context) (a *attachment, from string, err error) {
	if b.shares() {
		a, err = b.join(ctx)
		return a, sessions.FromShared, err
	}
	attempt := b.opts.Supplier.NewAttempt(b.party())
	defer attempt.End()
	s, from, err := attempt.Take(ctx, b.takesAnyServer())
	if err != nil {
		return nil, from, err
	}
	a = b.own(s)
	if b.start.skipsInitialize() {
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

// party returns on whose behalf the connection starts sessions: that of its principal,
// or of its address without authentication.
func (b *Bridge) party() string {
	client := b.c.Client()
	if client.Principal != "" {
		return "principal " + client.Principal
	}
	return "address " + subnet.Of(client.Addr).String()
}

// forwarded returns a context with what the client's request has for the server.
func (b *Bridge) forwarded() context.Context {
	ctx := b.c.Client().Context
	if ctx == nil {
		ctx = context.Background()
	}
	if header := b.c.Client().Header; len(header) > 0 {
		return upstream.WithHeader(ctx, header)
	}
	return ctx
}

// hold waits until it is decided which initialize goes out, and returns its params:
// the client's own, or the synthetic ones if a request needs the server or the client
// is silent for the announce delay. It does not wait after the decision, as after the
// loss of a session. While it waits it lends its turn. It fails with ctx.
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

// chooseSynthetic decides for the synthetic initialize, because a request needs the
// server. It does nothing after a decision.
func (s *start) chooseSynthetic() {
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

// skipsInitialize reports whether the gateway leaves the next initialize to the
// client.
func (s *start) skipsInitialize() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.params == nil
}
