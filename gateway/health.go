package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// probeEvery is how long the result of a failed probe is valid.
const probeEvery = 2 * time.Second

var (
	// errDraining is why a gateway that shuts down is not ready.
	errDraining = errors.New("shutting down")
	// errStarting is why it is not, while a probe takes long.
	errStarting = errors.New("the server is still starting")
	// errProbed is the reason of a probe's session to end.
	errProbed = errors.New("the readiness probe is over")
)

// health knows whether sessions can be started.
type health struct {
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

func (h *health) started(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.last = true, err
}

// drain ends the probe that runs; no other begins.
func (h *health) drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
	if h.probe != nil {
		h.probe.cancel()
	}
}

// verdictLocked returns what is known, and whether that is recent enough.
func (h *health) verdictLocked() (error, bool) {
	if h.draining {
		return errDraining, true
	}
	return h.last, h.known && (h.last == nil || time.Since(h.probed) < probeEvery)
}

// Ready returns nil if a session with the server can be started: the last start
// worked, or a probe made now does. While the gateway drains it is not ready.
// Concurrent callers share one probe, which the start timeout bounds; the
// wait for it is bounded by ctx and by the initialization timeout.
func (g *Gateway) Ready(ctx context.Context) error {
	p, err := g.probe()
	if p == nil {
		return err
	}
	timer := time.NewTimer(g.opts.InitializationTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-timer.C:
		return errStarting
	case <-ctx.Done():
		return fmt.Errorf("readiness probe: %w", context.Cause(ctx))
	}
}

// probe returns the probe to wait for, or what is known without one.
func (g *Gateway) probe() (*probe, error) {
	h := &g.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if err, known := h.verdictLocked(); known {
		return nil, err
	}
	if h.probe == nil {
		ctx, cancel := context.WithTimeout(context.Background(), g.opts.StartTimeout)
		h.probe = &probe{cancel: cancel, done: make(chan struct{})}
		p := h.probe
		g.sessions.Go(func() { g.runProbe(ctx, p) }) // ends with its timeout, or when the gateway drains
	}
	return h.probe, nil
}

// tryStart starts a session, for nothing but to see it; a shared one is kept.
func (g *Gateway) tryStart(ctx context.Context) error {
	if g.shared != nil {
		_, err := g.shared.places[0].get(ctx)
		return err
	}
	s, err := g.open(ctx)
	if err == nil {
		g.endSession(s, errProbed)
	}
	return err
}

func (g *Gateway) runProbe(ctx context.Context, p *probe) {
	defer p.cancel()
	err := g.tryStart(ctx)
	h := &g.health
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.draining:
		err = errDraining
	case err != nil:
		g.log.Warn("readiness probe failed", "err", err)
	}
	h.known, h.last, h.probed, h.probe = true, err, time.Now(), nil
	p.err = err
	close(p.done)
}
