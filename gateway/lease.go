package gateway

import (
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
)

const (
	// leaseInterval is how often each lease is checked. What a check remembers is up to 30 s
	// old, and the connection is to end within a minute.
	leaseInterval = 20 * time.Second
	// leaseChecks is how many may wait for an issuer at the same time.
	leaseChecks = 64
)

// keepLeases checks the leases of all connections until the last one has ended after Drain.
func (g *Gateway) keepLeases() {
	ticker := time.NewTicker(leaseInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			var checks errgroup.Group
			checks.SetLimit(leaseChecks)
			for _, c := range g.registry.All() {
				checks.Go(func() error { g.checkLease(c); return nil })
			}
			_ = checks.Wait()
		case <-g.registry.Drained():
			return
		}
	}
}

// checkLease closes a connection whose client may no longer use it.
func (g *Gateway) checkLease(c *connstate.Connection) {
	err := c.CheckLease()
	if err == nil {
		return
	}
	reason := connstate.ClosedRevoked
	if errors.Is(err, front.ErrExpired) {
		reason = connstate.ClosedExpired
	}
	g.now.Load().opts.Logger.Info("client no longer authorized", "connectionId", c.ShortID(), "err", err)
	c.Close(reason)
}
