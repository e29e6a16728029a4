package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/background"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
)

// surviveReaders has a write fail to which nobody listens any more. Otherwise it would end the program, and
// nothing would end what its servers have started. Ignore would do the same to the servers, which inherit
// that.
func surviveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// serveStdio serves one client on stdin and stdout, until stdin ends, a signal comes, or the
// parent process ends. It returns the exit code.
func (m *Main) serveStdio(c *config.Config, shared gateway.Options) int {
	log := shared.Logger
	s, gw, behind, err := openStdio(c, shared)
	if err != nil {
		return m.refuse(err)
	}
	if c.Stdio.Learn {
		return m.learn(c, s, gw, log)
	}
	grace := time.Duration(c.ShutdownTimeout)
	surviveReaders()
	log.Info("serving stdin and stdout", "version", buildinfo.Read().Version, "server", c.Title(s))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := background.NewIntroduction(m.Stdin, m.Stdout)
	serving, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	var standing sync.WaitGroup
	var learner io.Closer // which waits for the end of this process; nil: none does
	known := forprogram.Of(gw)
	if known.Remembers() && c.StateDir != "" {
		standing.Go(func() { // ends with serving
			learner = background.StandBy(serving, client, known, m.Args, c.StateDir, log)
		})
	}
	release := known.UseServer()
	for _, g := range behind {
		releaseOthers, releaseOne := release, forprogram.Of(g).UseServer()
		release = func() {
			releaseOthers()
			releaseOne()
		}
	}
	served := make(chan error, 1)
	go func() { served <- gw.ServeStdio(ctx, client, client, grace) }()
	code, why := m.awaitEnd(served, grace, log)
	leave(why)
	standing.Wait()
	defer runtime.KeepAlive(&learner)
	return m.stop(log, grace, func(ctx context.Context) {
		if err := gw.Shutdown(ctx); err != nil {
			log.Warn("gateway shutdown failed", "err", err)
		}
		var ending sync.WaitGroup
		for _, g := range behind {
			ending.Go(func() {
				if err := g.Shutdown(ctx); err != nil {
					log.Warn("gateway shutdown failed", "err", err)
				}
			})
		}
		ending.Wait()
		release()
	}, func() {
		for _, g := range append(behind, gw) {
			forprogram.Abort(g)
		}
	}, nil, code)
}

// openStdio returns what is served on stdin and stdout, and its gateway: a server, the shared sse-server of --connect,
// or a view. behind are the gateways of the servers of a view.
func openStdio(c *config.Config, shared gateway.Options) (s *config.Server, gw *gateway.Gateway,
	behind []*gateway.Gateway, err error) {
	onStdio := []string{gateway.TransportStdio.String()}
	switch v := c.ViewOfStdio(); {
	case v != nil:
		v.Transports = onStdio
		servers := make(map[string]*gateway.Gateway)
		for _, m := range v.Members {
			m.Server.Transports = onStdio // it ends with the client, as a server alone does
			g, err := newGateway(c, m.Server, shared)
			if err != nil {
				return nil, nil, nil, err
			}
			servers[m.Name], behind = g, append(behind, g)
		}
		_, gw, err = openView(c, v, servers, shared)
		return v.Server, gw, behind, err
	case c.Connect != nil:
		s = c.Each()[0]
		for _, one := range c.Endpoints() { // several: the daemon serves them all
			if c.PathOf(one) == c.Connect.Path {
				s = one
			}
		}
		s.Transports = onStdio
		gw, err = connectedGateway(c, s, shared)
		return s, gw, nil, err
	default:
		s = c.Each()[0]
		s.Transports = onStdio
		gw, err = newGateway(c, s, shared)
		return s, gw, nil, err
	}
}

// awaitEnd waits until the client has been served, a signal comes, or the parent process ends. It returns the
// exit code, and background.ErrInOrder if the client has left in order.
func (m *Main) awaitEnd(served <-chan error, grace time.Duration, log *slog.Logger) (code int, why error) {
	for parent := os.Getppid(); ; {
		select {
		case err := <-served:
			if err != nil {
				log.Error("client lost", "err", err)
				return exit.Failure, nil
			}
			return exit.OK, background.ErrInOrder
		case sig := <-m.signals:
			log.Info("stopping", "signal", sig.String(), "timeout", grace)
			return exit.OK, nil
		case <-time.After(time.Second):
			// stdin does not tell that the parent has ended while another process has its other end
			// too. The signal of Linux for this (PR_SET_PDEATHSIG) comes already at the end of the
			// thread that started the process.
			if os.Getppid() != parent {
				log.Info("stopping", "reason", "the parent process has ended", "timeout", grace)
				return exit.OK, nil
			}
		}
	}
}

// connectedGateway returns the gateway of sse-server stdio --connect. Memory of the server answers the client
// also before the daemon is there.
func connectedGateway(c *config.Config, s *config.Server, common gateway.Options) (*gateway.Gateway, error) {
	up, options := served(c, s, common)
	shared, err := background.Connect(c, up, common.Logger)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Place("connect"), err)
	}
	// These are for the daemon.
	options.Warm, options.Sessions = 0, gateway.SessionsPerConnection
	options.MaxInFlight, options.ForwardHeaders = 0, nil
	return gateway.New(shared, options)
}

// learn is the process that stands by for a client: it has the server say what it says, unless that is remembered. It
// returns the exit code.
func (m *Main) learn(c *config.Config, s *config.Server, gw *gateway.Gateway, log *slog.Logger) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { // ends with ctx
		select {
		case <-m.signals:
			stop()
		case <-ctx.Done():
		}
	}()
	learned := make(chan error, 1)
	// It ends with stdin and the disk, and with ctx.
	go func() { learned <- background.Learn(ctx, m.Stdin, c, s, forprogram.Of(gw)) }()
	code := exit.OK
	select {
	case err := <-learned:
		if err != nil {
			log.Warn("what the server says could not be learned", "err", err)
			code = exit.Failure
		}
	case <-ctx.Done():
	}
	end := func(ctx context.Context) { _ = gw.Shutdown(ctx) }
	return m.stop(log, time.Duration(c.ShutdownTimeout), end, func() { forprogram.Abort(gw) }, nil, code)
}
