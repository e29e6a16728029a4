package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// drainJitter is the window over which streams that have nothing in flight are
// closed, so that their clients do not all come back at one moment; at most a
// quarter of the time that Shutdown has.
const drainJitter = 2 * time.Second

// sessionGrace is how long Shutdown waits for sessions to end after its own
// time is up: long enough for child processes to be killed.
const sessionGrace = 5 * time.Second

// Drain makes the gateway refuse new connections and report that it is not
// ready. Connections that are open go on. It is idempotent.
func (g *Gateway) Drain() {
	g.supplier.Drain()
	g.registry.Drain()
}

// Shutdown drains the gateway and ends it: it lets requests in flight finish, refuses
// new ones, closes the streams at moments spread at random, and ends sessions and
// child processes. When ctx ends first, it answers what is in flight with an error
// and closes what is left; the returned error says how much that was.
// After Shutdown the gateway holds nothing.
func (g *Gateway) Shutdown(ctx context.Context) error {
	g.Drain()
	window := drainJitter
	if deadline, ok := ctx.Deadline(); ok {
		window = min(window, time.Until(deadline)/4)
	}
	for _, c := range g.registry.All() {
		if quiet, err := c.Drain(); err == nil {
			g.supplier.Go(func() { finish(ctx, c, quiet, window) })
		}
	}
	var err error
	select {
	case <-g.registry.Drain():
	case <-ctx.Done():
		err = g.cut()
	}
	g.supplier.Close()
	return errors.Join(err, g.waitSessions(ctx))
}

// Abort kills the server's processes at once, with all they have started. It is
// for a program that ends without waiting for Shutdown.
func (g *Gateway) Abort() { g.supplier.Abort() }

// finish closes a connection once nothing is in flight on it.
func finish(ctx context.Context, c *connstate.Connection, quiet <-chan struct{}, window time.Duration) {
	select {
	case <-quiet:
	case <-c.Done():
		return
	case <-ctx.Done():
		return
	}
	if window > 0 {
		select {
		case <-time.After(rand.N(window)):
		case <-c.Done():
			return
		case <-ctx.Done():
			return
		}
	}
	c.CloseGracefully(metrics.ClosedShutdown, writeTime(ctx))
}

// writeTime is how long a stream may take to write what was sent to it: until
// Shutdown's time is up, when cut closes it. One that stalls is closed earlier, by
// the write timeout.
func writeTime(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline) + cutGrace
	}
	return 24 * time.Hour
}

// cutGrace is how long a stream may take to write the last errors.
const cutGrace = time.Second

// cut answers what did not finish in time with an error, and closes it.
func (g *Gateway) cut() error {
	var requests int
	all := g.registry.All()
	var closing sync.WaitGroup
	for _, c := range all {
		requests += c.InFlight()
		closing.Go(func() {
			for _, id := range c.Unanswered() {
				c.AnswerNow(id, jsonrpc.NewError(id, multiplex.ReasonError("the gateway shut down before the server answered", "draining", false)), metrics.ErrorDraining)
			}
			c.CloseGracefully(metrics.ClosedShutdown, cutGrace)
		})
	}
	closing.Wait()
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("shutdown: time is up: %d connections cut, %d requests answered with an error", len(all), requests)
}

// waitSessions waits until all sessions have ended.
func (g *Gateway) waitSessions(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		g.supplier.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done:
		return nil
	case <-time.After(sessionGrace):
		return errors.New("shutdown: time is up: a session with the server did not end")
	}
}
