package sessions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// probeEvery is how long the result of a failed probe is valid.
const probeEvery = 2 * time.Second

// ErrStarting is the error of Ready while a probe takes long.
var ErrStarting = errors.New("the server is still starting")

var (
	// errDraining is the error of Ready during a shutdown.
	errDraining = errors.New("shutting down")
	// errProbed is the close reason of the session of a probe.
	errProbed = errors.New("the readiness probe is over")
)

// readiness records whether sessions can be started.
type readiness struct {
	mu       sync.Mutex // guards what follows
	known    bool       // a start has ended
	last     error      // the error of the last start
	probed   time.Time
	draining bool
	probe    *probe // the running probe, or nil
}

// probe is a start that only tests whether a session can be started.
type probe struct {
	cancel context.CancelFunc
	done   chan struct{} // closed at its end
	err    error         // set before done is closed
}

// note records the result of a start.
func (r *readiness) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.last = true, err
}

// verdictLocked returns the last result, and whether it is still valid.
func (r *readiness) verdictLocked() (error, bool) {
	if r.draining {
		return errDraining, true
	}
	return r.last, r.known && (r.last == nil || time.Since(r.probed) < probeEvery)
}

// Drain makes Ready fail. It cancels the running probe; no other begins.
func (s *Supplier) Drain() {
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
	if r.probe != nil {
		r.probe.cancel()
	}
}

// Ready returns nil if a session can be started: the last start worked, or a probe
// now does. Concurrent callers share one probe, which the start timeout bounds. ctx
// and the initialization timeout bound the wait for it.
func (s *Supplier) Ready(ctx context.Context) error {
	p, err := s.probe()
	if p == nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(s.opts.InitializationTimeout):
		return ErrStarting
	case <-ctx.Done():
		return fmt.Errorf("readiness probe: %w", context.Cause(ctx))
	}
}

// probe returns the running probe, which it may begin, or nil and the last result if
// that is valid.
func (s *Supplier) probe() (*probe, error) {
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	if err, known := r.verdictLocked(); known {
		return nil, err
	}
	if r.probe == nil {
		ctx, cancel := context.WithTimeout(context.Background(), s.opts.StartTimeout)
		p := &probe{cancel: cancel, done: make(chan struct{})}
		r.probe = p
		s.Go(func() { s.runProbe(ctx, p) }) // ends with its timeout, or with Drain
	}
	return r.probe, nil
}

func (s *Supplier) runProbe(ctx context.Context, p *probe) {
	defer p.cancel()
	err := s.tryStart(ctx)
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.draining:
		err = errDraining
	case err != nil:
		s.log.Warn("readiness probe failed", "err", err)
	}
	r.known, r.last, r.probed, r.probe = true, err, time.Now(), nil
	p.err = err
	close(p.done)
}

// tryStart starts a session and ends it. A shared session it keeps.
func (s *Supplier) tryStart(ctx context.Context) error {
	if s.shared != nil {
		_, err := s.shared.slots[0].get(ctx)
		return err
	}
	session, err := s.open(ctx)
	if err == nil {
		session.End(errProbed)
	}
	return err
}
