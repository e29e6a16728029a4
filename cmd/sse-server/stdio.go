package main

import (
	"context"
	"log/slog"
	"os/signal"
	"syscall"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
)

// serveStdio serves one client on stdin and stdout, until stdin ends or a signal comes. It
// returns the exit code.
func (m *Main) serveStdio(c *config.Config, log *slog.Logger) int {
	err := c.CheckCommand()
	var gw *gateway.Gateway
	if err == nil {
		o := &c.Options
		o.Transports, o.RequireInitialize, o.AdoptSessions = []string{gateway.TransportStdio}, false, false
		gw, err = newGateway(c, gateway.Options{Logger: log})
	}
	if err != nil {
		m.report([]string{err.Error()})
		return exitConfig
	}
	// A client that reads no more would end the program at a write, and nothing would end
	// what its server has started. Now the write fails.
	signal.Ignore(syscall.SIGPIPE)
	log.Info("serving stdin and stdout", "version", buildinfo.Read().Version, "server", c.Served())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- gw.ServeStdio(ctx, m.Stdin, m.Stdout, c.ShutdownTimeout) }()
	code := exitOK
	select {
	case err := <-served:
		if err != nil {
			log.Error("client lost", "err", err)
			code = exitFailure
		}
	case sig := <-m.Signals:
		log.Info("stopping", "signal", sig.String(), "timeout", c.ShutdownTimeout)
	}
	return m.stop(log, c.ShutdownTimeout, func(ctx context.Context) {
		if err := gw.Shutdown(ctx); err != nil {
			log.Warn("gateway shutdown failed", "err", err)
		}
	}, gw.Abort, code)
}
