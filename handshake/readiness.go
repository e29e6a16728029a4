package handshake

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// probeEvery is how long the result of a failed probe is valid.
const probeEvery = 2 * time.Second

// ErrStarting is the error of Ready while a probe takes long.
var ErrStarting = errors.New("the server is still starting")

// errDraining is the error of Ready during a shutdown.
var errDraining = errors.New("shutting down")

// Health returns what is known of the server.
func (s *Supplier) Health() Health {
	known := s.IsKnown()
	r := s.record
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.health
	h.Known = known
	h.Draining, h.Initialized = s.ready.Err() != nil, s.server.Load()
	h.Failing = r.starts == startsDoubted || r.starts == startsFail || time.Now().Before(r.unsteadyUntil)
	return h
}

// Ready returns nil if a session can be started: the last start worked, or a probe
// does, now or in the last two seconds; or what the server says is remembered, and no
// start has failed since. Concurrent callers share one probe, which the start timeout
// bounds. ctx and the initialization timeout bound the wait for it: if the probe takes
// longer, what was known before counts.
func (s *Supplier) Ready(ctx context.Context) error {
	p, err := s.probe()
	if p == nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(s.Options().InitializationTimeout):
		r := s.record
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.workedLocked() && s.ready.Err() == nil {
			return nil
		}
		return fmt.Errorf("%w%s", ErrStarting, s.Advice())
	case <-ctx.Done():
		return fmt.Errorf("readiness probe: %w", context.Cause(ctx))
	}
}

// probe returns the running probe, which it may begin, or nil and what is known without
// one.
func (s *Supplier) probe() (*probe, error) {
	known := s.IsKnown()
	r := s.record
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case s.ready.Err() != nil:
		return nil, errDraining
	case r.starts == startsWork, r.starts == startsUndecided && known: // a known server may sleep until a start fails
		return nil, nil
	case time.Since(r.probed) < probeEvery:
		return nil, r.failure
	}
	if r.probe == nil {
		p := &probe{done: make(chan struct{})}
		r.probe = p
		s.Go(func() { s.runProbe(p) }) // ends with the start timeout, or with Drain
	}
	return r.probe, nil
}

// runProbe starts a session for those who ask for readiness, notes the result for them and for those after them, and
// closes p.done. A supplier that drains fails every probe.
func (s *Supplier) runProbe(p *probe) {
	ctx, cancel := context.WithTimeout(s.ready, s.Options().StartTimeout)
	defer cancel()
	p.err = s.tryStart(ctx)
	r := s.record
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probed, r.probe = time.Now(), nil
	switch {
	case s.ready.Err() != nil:
		p.err = errDraining
		r.starts, r.failure = startsFail, p.err
	case p.err != nil:
		s.log.Warn("readiness probe failed", "err", p.err)
		r.starts, r.failure = startsFail, p.err
		r.noteLocked(p.err)
	default:
		r.noteWorksLocked()
	}
	close(p.done)
}

// tryStart starts a session and ends it. A shared session it keeps. A server that refuses
// the credentials of the probe is there, if clients have others.
func (s *Supplier) tryStart(ctx context.Context) error {
	if s.shared != nil {
		_, err := s.shared.getSession(ctx)
		return err
	}
	session, err := s.startOwn(ctx)
	if err == nil {
		session.Close(errNotNeeded)
	}
	if s.refusesClient(err) {
		return nil
	}
	return err
}

// quiet is how long no server is started ahead after a check that has failed: it would fail for the same reason,
// which its log lines would push out of sight.
const quiet = 10 * time.Second

// CheckStart is Try of a server before its first client comes. A shared session goes on for that client. Ready
// and Health know the result, and what the server says is remembered.
func (s *Supplier) CheckStart(ctx context.Context) (found Found, err error) {
	if s.shared != nil {
		until := time.Now().Add(s.Options().StartTimeout)
		session, err := s.shared.getSession(ctx)
		if err != nil {
			return Found{}, err
		}
		return session.findAndLearn(ctx, until)
	}
	if !s.IsKnown() { // a warm server that starts after the check waits for its client
		s.serverUsed(time.Now().UnixNano())
	}
	found, err = s.tryAndLearn(ctx)
	switch {
	case err == nil:
		s.NoteStart()
	case ctx.Err() == nil:
		s.NoteFailure(err)
		s.pool.pause(quiet)
	}
	return found, err
}
