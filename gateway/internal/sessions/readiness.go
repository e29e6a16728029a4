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

// ErrStarting is why a server is not ready while a probe takes long.
var ErrStarting = errors.New("the server is still starting")

var (
	// errDraining is why a gateway that shuts down is not ready.
	errDraining = errors.New("shutting down")
	// errProbed is the reason of a probe's session to end.
	errProbed = errors.New("the readiness probe is over")
)

// readiness is what is known of whether sessions can be started.
type readiness struct {
	mu       sync.Mutex // guards what follows
	known    bool       // a session has been started, or tried to
	last     error      // how the last start went
	probed   time.Time
	draining bool
	probe    *probe // the one that runs; nil: none does
}

// probe is a start that is made only to see whether it works.
type probe struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when it is over
	err    error         // set before done is closed
}

// note notes how a start went.
func (r *readiness) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.last = true, err
}

// verdictLocked returns what is known, and whether that is recent enough.
func (r *readiness) verdictLocked() (error, bool) {
	if r.draining {
		return errDraining, true
	}
	return r.last, r.known && (r.last == nil || time.Since(r.probed) < probeEvery)
}

// Drain makes Ready fail. It ends the probe that runs; no other begins.
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
// made now does. Concurrent callers share one probe, which the start timeout
// bounds; the wait for it is bounded by ctx and by the initialization timeout.
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

// probe returns the probe to wait for, or what is known without one.
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

// tryStart starts a session, for nothing but to see it; a shared one is kept.
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
