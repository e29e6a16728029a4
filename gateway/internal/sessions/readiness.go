package sessions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/metrics"
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
	works    bool       // the last start that decided worked
	doubted  bool       // a start has failed since
	probed   time.Time  // when the last probe ended; zero: there was none
	verdict  error      // the result of the last probe
	draining bool
	probe    *probe // the running probe, or nil
}

// probe is a start that only tests whether a session can be started.
type probe struct {
	cancel context.CancelFunc
	done   chan struct{} // closed at its end
	err    error         // set before done is closed
}

// note records whether a start worked. A failed start decides nothing, because its client
// may be the reason: the next call of Ready makes a probe.
func (r *readiness) note(works bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.doubted = !works; works {
		r.works = true
	}
}

// knownLocked returns what is known without a probe, and whether that is anything.
func (r *readiness) knownLocked() (error, bool) {
	switch {
	case r.draining:
		return errDraining, true
	case r.works && !r.doubted:
		return nil, true
	}
	return r.verdict, !r.probed.IsZero() && time.Since(r.probed) < probeEvery
}

// unlessWorked returns err, or nil if the last start that decided worked.
func (r *readiness) unlessWorked(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.works && !r.draining {
		return nil
	}
	return err
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
// does, now or in the last two seconds. Concurrent callers share one probe, which the
// start timeout bounds. ctx and the initialization timeout bound the wait for it: if the
// probe takes longer, what was known before counts.
func (s *Supplier) Ready(ctx context.Context) error {
	p, err := s.probe()
	if p == nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(s.opts.InitializationTimeout):
		return s.readiness.unlessWorked(ErrStarting)
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
	if err, known := r.knownLocked(); known {
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
	if s.opts.Forwards && denied(err) {
		err = nil // the server is there, and wants what only clients have
	}
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.draining:
		err = errDraining
	case err != nil:
		s.log.Warn("readiness probe failed", "err", err)
	}
	r.works, r.doubted, r.verdict, r.probed, r.probe = err == nil, false, err, time.Now(), nil
	p.err = err
	close(p.done)
}

// denied reports whether the server refused the credentials of a start.
func denied(err error) bool {
	failure, ok := errors.AsType[*handshake.Failure](err)
	return ok && failure.Reason == metrics.ReasonDenied
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
