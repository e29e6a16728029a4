package handshake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/metrics"
)

// probeEvery is how long the result of a failed probe is valid.
const probeEvery = 2 * time.Second

// ErrStarting is the error of Ready while a probe takes long.
var ErrStarting = errors.New("the server is still starting")

// errDraining is the error of Ready during a shutdown.
var errDraining = errors.New("shutting down")

// readiness records whether sessions can be started.
type readiness struct {
	life  context.Context // ends with drain
	drain context.CancelFunc

	mu       sync.Mutex // guards what follows
	starts   startVerdict
	failure  error     // in startsFail, of the last probe
	probe    *attempt  // a start that only tests whether a session can be started; nil: none runs
	probed   time.Time // when the last probe ended
	health   Health    // but for Draining, Failing, Initialized and Known
	lostSoon bool      // the last failure is the loss of a session soon after its start
}

// startVerdict is what is known of whether a session can be started. A start that works and a probe decide that. A
// start that fails for a client does not: the client may be the reason.
type startVerdict uint8

const (
	startsUndecided startVerdict = iota // nothing has decided
	startsWork                          // the last start worked
	startsDoubted                       // one has failed since: the next call of Ready makes a probe
	startsFail                          // the last probe failed, and none has worked since
)

// NoteStart records a start that worked.
func (s *Supplier) NoteStart() {
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteWorksLocked()
}

// noteWorksLocked notes that a start works now.
func (r *readiness) noteWorksLocked() {
	r.starts, r.failure, r.health.Started = startsWork, nil, time.Now()
}

// workedLocked reports whether the last start that decided worked.
func (r *readiness) workedLocked() bool { return r.starts != startsFail && !r.health.Started.IsZero() }

// Worked reports whether a start has ever worked.
func (s *Supplier) Worked() bool {
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.health.Started.IsZero()
}

// NoteFailure records a failed start and its error. It decides nothing, because its client
// may be the reason: the next call of Ready makes a probe, and Health shows the server as
// failing until a start works. That a server refuses a client's own credentials is no failure.
func (s *Supplier) NoteFailure(err error) {
	if s.refusesClient(err) {
		return
	}
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLocked(err, false)
	if r.starts != startsFail {
		r.starts = startsDoubted
	}
}

// refusesClient reports whether a start failed because the server, which has been reached,
// refuses the credentials of one client or of a probe, while those of others may be right.
func (s *Supplier) refusesClient(err error) bool {
	failure, _ := errors.AsType[*Failure](err)
	return s.Options().Forwards && failure != nil && failure.Reason == metrics.ReasonDenied
}

// NoteLoss records that a session was lost, and why. soon says that it had not proved itself.
func (s *Supplier) NoteLoss(err error, soon bool) {
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLocked(err, soon)
}

func (r *readiness) noteLocked(err error, soon bool) {
	r.health.Failed, r.health.Failure, r.lostSoon = time.Now(), err.Error(), soon
}

// Health is what is known of the server without a probe. Times are zero for what has not
// happened.
type Health struct {
	Draining bool
	// Failing says that the last start failed, or that a session ended soon after its start
	// in the last minute: longer than the pauses of a server that does so again and again.
	Failing     bool
	Started     time.Time // the last start that worked
	Failed      time.Time // the last failed start or lost session
	Failure     string    // and why
	Initialized *Server   // what the server last said of itself; nil without a handshake
	Known       bool      // what the server says is remembered
}

// Health returns what is known of the server.
func (s *Supplier) Health() Health {
	known := s.IsKnown()
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.health
	h.Known = known
	h.Draining, h.Initialized = r.life.Err() != nil, s.server.Load()
	h.Failing = r.starts == startsDoubted || r.starts == startsFail || r.lostSoon && time.Since(h.Failed) < time.Minute
	return h
}

// Drain makes Ready fail. It cancels the running probe; no other begins.
func (s *Supplier) Drain() { s.drain() }

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
		r := &s.readiness
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.workedLocked() && r.life.Err() == nil {
			return nil
		}
		return fmt.Errorf("%w%s", ErrStarting, s.Advice())
	case <-ctx.Done():
		return fmt.Errorf("readiness probe: %w", context.Cause(ctx))
	}
}

// probe returns the running probe, which it may begin, or nil and what is known without
// one.
func (s *Supplier) probe() (*attempt, error) {
	known := s.IsKnown()
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.life.Err() != nil:
		return nil, errDraining
	case r.starts == startsWork, r.starts == startsUndecided && known: // a known server may sleep until a start fails
		return nil, nil
	case time.Since(r.probed) < probeEvery:
		return nil, r.failure
	}
	if r.probe == nil {
		p := &attempt{done: make(chan struct{})}
		r.probe = p
		s.Go(func() { s.runProbe(p) }) // ends with the start timeout, or with Drain
	}
	return r.probe, nil
}

func (s *Supplier) runProbe(p *attempt) {
	ctx, cancel := context.WithTimeout(s.readiness.life, s.Options().StartTimeout)
	defer cancel()
	p.err = s.tryStart(ctx)
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probed, r.probe = time.Now(), nil
	switch {
	case r.life.Err() != nil:
		p.err = errDraining
		r.starts, r.failure = startsFail, p.err
	case p.err != nil:
		s.log.Warn("readiness probe failed", "err", p.err)
		r.starts, r.failure = startsFail, p.err
		r.noteLocked(p.err, false)
	default:
		r.noteWorksLocked()
	}
	close(p.done)
}

// tryStart starts a session and ends it. A shared session it keeps. A server that refuses
// the credentials of the probe is there, if clients have others.
func (s *Supplier) tryStart(ctx context.Context) error {
	if s.shared != nil {
		_, err := s.shared.get(ctx)
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
