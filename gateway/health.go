package gateway

import (
	"context"
	"errors"
	"sync"
	"time"
)

// probeEvery is how long the result of a failed probe stands.
const probeEvery = 2 * time.Second

// errDraining is why a gateway that shuts down is not ready.
var errDraining = errors.New("shutting down")

// health knows whether sessions can be started.
type health struct {
	mu       sync.Mutex // guards what follows
	known    bool       // a session has been started, or tried to
	last     error      // how the last start went
	probed   time.Time
	draining bool

	probing sync.Mutex // held by the one probe that runs
}

func (h *health) started(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.last = true, err
}

func (h *health) drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
}

// verdict returns what is known, and whether that is recent enough.
func (h *health) verdict() (error, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return errDraining, true
	}
	return h.last, h.known && (h.last == nil || time.Since(h.probed) < probeEvery)
}

// Ready returns nil if a session with the server can be started: the last start
// worked, or a probe made now does. While the gateway drains it is not ready.
// ctx bounds the probe, as the initialization timeout does.
func (g *Gateway) Ready(ctx context.Context) error {
	if err, known := g.health.verdict(); known {
		return err
	}
	g.health.probing.Lock()
	defer g.health.probing.Unlock()
	if err, known := g.health.verdict(); known { // another probe has found out meanwhile
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, g.opts.InitializationTimeout)
	defer cancel()
	s, err := g.open(ctx, g.params, nil)
	if s != nil {
		g.endSession(s, errors.New("the readiness probe is over"))
	}
	g.health.mu.Lock()
	g.health.probed = time.Now()
	g.health.mu.Unlock()
	g.health.started(err)
	return err
}
