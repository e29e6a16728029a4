package handshake

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// shared holds the session that all connections share. It starts when the first of them
// needs it, and again after its loss; connections that wait share one start.
type shared struct {
	source *source

	mu sync.Mutex // guards what follows
	// There is a session, or one is starting, or neither: then the next get starts one.
	session  *Session
	starting *attempt
	notYet   time.Time        // a start waits until then
	pauses   *backoff.Backoff // between starts that fail; reset when a session proves itself
	// afterLoss says that the next start follows a loss: the last session ended, and not for want of clients.
	// startLocked sets it with each session, and checkLocked takes it back.
	afterLoss bool
}

// attempt is a start for whose end several may wait.
type attempt struct {
	done    chan struct{} // closed at its end
	session *Session      // set, like err, before done is closed; nil if it failed
	err     error
}

// getSession returns the session, and waits for its start if there is none. The error is a
// *Failure.
func (s *shared) getSession(ctx context.Context) (*Session, error) {
	s.mu.Lock()
	s.checkLocked()
	if s.session != nil {
		defer s.mu.Unlock()
		return s.session, nil
	}
	running := s.starting
	if running == nil {
		running = s.startLocked()
	}
	s.mu.Unlock()
	select {
	case <-running.done:
		return running.session, running.err
	case <-ctx.Done():
		return nil, creationFailure(startReason(ctx.Err()), "the caller stopped waiting for the start", ctx.Err())
	}
}

// startLocked begins a start, which ends with the supplier at the latest.
func (s *shared) startLocked() *attempt {
	running := &attempt{done: make(chan struct{})}
	s.starting = running
	wait, afterLoss := time.Until(s.notYet), s.afterLoss
	s.source.Go(func() {
		defer close(running.done)
		_ = backoff.Wait(s.source.life, wait)
		running.session, running.err = s.startSession(afterLoss)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.starting = nil
		if running.err != nil {
			s.notYet = time.Now().Add(s.pauses.Next())
			return
		}
		s.session, s.afterLoss = running.session, true
		s.source.Go(func() { s.watch(running.session) }) // ends with the session
	})
	return running
}

// startSession starts the session and reports the result to log and metrics, once for all
// waiting connections. afterLoss is that of the field.
func (s *shared) startSession(afterLoss bool) (*Session, error) {
	source, m := s.source, s.source.metrics
	began := time.Now()
	session, err := source.startOwn(source.life)
	took := time.Since(began)
	failure, failed := errors.AsType[*Failure](err)
	switch {
	case err == nil:
		m.HandshakeDone(metrics.HandshakeOK, "", "", took)
		if afterLoss {
			m.SessionRestarted()
		}
		source.NoteStart()
		source.log.Info("shared session started", append(session.ServerAttrs(), "duration", took)...)
	case isCancelled(err) || !failed:
		m.HandshakeDone(metrics.HandshakeCanceled, "", "", took)
	default:
		m.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, took)
		source.NoteFailure(err)
		source.limited.Warn("shared session start failed", "phase", string(failure.Phase), "reason", failure.Reason,
			"duration", took, "err", err)
	}
	return session, err
}

// watch waits for the end of the session, retires it when its server is replaced or no client has been there for
// ProcessIdle, or ends it with the supplier.
func (s *shared) watch(session *Session) {
	for unused := (time.Time{}); !session.isOver(); {
		var look <-chan time.Time
		opts := s.source.Options()
		if opts.ProcessIdle > 0 && opts.Warm == 0 { // else it is wanted also without a client
			look = time.After(opts.IdleCheck())
		}
		select {
		case <-s.source.closed.Done():
			session.Close(errNotNeeded)
			return
		case <-s.source.replaced:
			session.Retire(ErrReplaced, nil)
		case <-session.Over():
		case <-look:
			switch {
			case session.Callers() > 0:
				unused = time.Time{}
			case unused.IsZero():
				unused = time.Now()
			case time.Since(unused) >= opts.ProcessIdle:
				session.Retire(ErrIdle, nil)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkLocked()
}

// checkLocked forgets the session if it is over, and reports its loss, once. If it had
// not proved itself, this counts as a failed start.
func (s *shared) checkLocked() {
	session := s.session
	if session == nil || !session.isOver() {
		return
	}
	s.session = nil
	switch {
	case errors.Is(session.Why(), ErrReplaced):
		s.source.log.Info("shared session replaced", "connections", session.Callers(), "duration", session.Age())
		return
	case errors.Is(session.Why(), ErrIdle):
		s.source.log.Info("shared session ended: no client is there", "duration", session.Age())
		s.afterLoss = false
		return
	}
	s.source.limited.Warn("shared session lost", "connections", session.Callers(), "duration", session.Age(), "err",
		session.Why())
	s.source.NoteLoss(session.Why(), !session.Proven())
	if session.Proven() {
		s.pauses = NewPauses()
		return
	}
	s.notYet = time.Now().Add(s.pauses.Next())
	failure := EndedSoon(session.Why())
	s.source.metrics.HandshakeDone(metrics.HandshakeError, string(failure.Phase), failure.Reason, session.Age())
}
