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
)

// drainJitter is the window over which Shutdown closes idle streams, so that their clients do not
// reconnect all at once: at most a quarter of its time; in a cluster, three quarters.
const drainJitter = 2 * time.Second

// sessionGrace is how long Shutdown waits for sessions after its own time is up: long
// enough to kill child processes.
const sessionGrace = 5 * time.Second

// Drain makes the gateway refuse new connections and report that it is not ready.
// Open connections go on. It is idempotent.
func (g *Gateway) Drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ending = true
	g.now.Load().supplier.Drain()
	g.registry.Drain()
}

// Shutdown drains the gateway and ends it. It lets requests in flight finish, closes each connection at a random
// moment once it has none, and ends sessions and child processes. Meanwhile a client can POST: its responses and
// notifications still reach the server, and a new request is answered with an error with the reason draining. In
// a cluster, a connection also serves new requests until its moment. If ctx ends first,
// Shutdown answers the remaining requests with an error and closes the remaining connections;
// the returned error has their numbers. After Shutdown the gateway holds no resources, and
// one with a Name that is not part of Servers has no series in the registry.
func (g *Gateway) Shutdown(ctx context.Context) error { return g.shutdown(ctx, nil) }

// shutdown is Shutdown of one of several gateways. Connections of clients in this process go on until viewsEnded is
// closed: a client in front of them may have a request in flight. nil does not wait.
func (g *Gateway) shutdown(ctx context.Context, viewsEnded <-chan struct{}) error {
	g.Drain()
	window := drainJitter
	if deadline, ok := ctx.Deadline(); ok {
		window = min(window, time.Until(deadline)/4)
	}
	supplier := g.now.Load().supplier // the last one
	for _, c := range g.registry.All() {
		if viewsEnded != nil && c.Client().Transport == connstate.TransportInProcess {
			supplier.Go(func() {
				if !await(ctx, c, viewsEnded) {
					return
				}
				if quiet, err := c.Drain(); err == nil {
					closeWhenQuiet(ctx, c, quiet, 0)
				}
			})
		} else if g.now.Load().opts.Replicas != nil {
			supplier.Go(func() { drainLater(ctx, c) })
		} else if quiet, err := c.Drain(); err == nil {
			supplier.Go(func() { closeWhenQuiet(ctx, c, quiet, window) })
		}
	}
	var err error
	select {
	case <-g.registry.Drain():
	case <-ctx.Done():
		err = g.cutOff()
	}
	supplier.Close()
	err = errors.Join(err, g.waitSessions(ctx))
	g.detach()
	if g.name != "" && !g.listed.Load() {
		g.metrics.Unregister()
	}
	return err
}

// Revoke closes the connections of each principal for which gone returns true, such as one
// that has no token any more. The principal of clients without authentication is "".
func (g *Gateway) Revoke(gone func(principal string) bool) {
	for _, c := range g.registry.All() {
		if gone(c.Client().Principal) {
			c.Close(connstate.ClosedRevoked)
		}
	}
}

// closeWhenQuiet closes a connection a random time of at most window after it has no request in flight.
func closeWhenQuiet(ctx context.Context, c *connstate.Connection, quiet <-chan struct{}, window time.Duration) {
	if await(ctx, c, quiet) && pause(ctx, c, window) {
		c.CloseGracefully(connstate.ClosedShutdown, writeTime(ctx))
	}
}

// drainPoll is how often drainLater looks whether a connection still initializes. Requests that
// have found the connection when it leaves have as long to reach it.
const drainPoll = 200 * time.Millisecond

// drainLater drains a connection at a random moment of the first three quarters of the time
// that ctx has, and closes it once it is quiet.
func drainLater(ctx context.Context, c *connstate.Connection) {
	window := drainJitter
	if deadline, ok := ctx.Deadline(); ok {
		window = time.Until(deadline) * 3 / 4
	}
	if !pause(ctx, c, window) {
		return
	}
	c.Leave()
	for first := true; first || c.State() == connstate.Initializing; first = false { // its requests wait at the gate
		if !await(ctx, c, time.After(drainPoll)) {
			return
		}
	}
	if quiet, err := c.Drain(); err == nil {
		closeWhenQuiet(ctx, c, quiet, 0)
	}
}

// pause waits for a random time of at most window, and reports whether the connection is still to be closed.
func pause(ctx context.Context, c *connstate.Connection, window time.Duration) bool {
	return await(ctx, c, time.After(rand.N(max(window, 0)+1)))
}

// await waits for an event, and reports false if the connection is closed or ctx ends first.
func await[T any](ctx context.Context, c *connstate.Connection, event <-chan T) bool {
	select {
	case <-event:
		return true
	case <-c.Done():
	case <-ctx.Done():
	}
	return false
}

// writeTime returns how long a stream may take to write its last events: until Shutdown's time is
// up, when cut closes it. The write timeout closes a stalled stream earlier.
func writeTime(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline) + cutGrace
	}
	return 24 * time.Hour
}

// cutGrace is how long a stream may take to write the last errors.
const cutGrace = time.Second

// cutOff answers all unanswered requests with an error, and closes all connections. It fails if there were any.
func (g *Gateway) cutOff() error {
	var requests int
	all := g.registry.All()
	var closing sync.WaitGroup
	for _, c := range all {
		requests += c.InFlight()
		closing.Go(func() {
			for _, r := range c.Unanswered() {
				r.Fail(jsonrpc.ReasonError("the gateway shut down before the server answered", "draining", false),
					metrics.ErrorDraining)
			}
			c.CloseGracefully(connstate.ClosedShutdown, cutGrace)
		})
	}
	closing.Wait()
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("shutdown: time is up: %d connections cut, %d requests answered with an error", len(all),
		requests)
}

// waitSessions waits until all connections and sessions have ended, and fails sessionGrace after ctx.
func (g *Gateway) waitSessions(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		<-g.registry.Drain() // a connection that has just been opened may still start something
		g.now.Load().supplier.Wait()
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
