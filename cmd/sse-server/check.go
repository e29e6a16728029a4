package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
)

// tryServers opens a session with each server and prints what the server is, or why there
// is no session. It returns the exit code. After a signal it tries no more servers, but
// still ends the one that it has started.
func (m *Main) tryServers(c *config.Config, log *slog.Logger) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { // ends with ctx
		select {
		case <-m.signals:
			stop()
		case <-ctx.Done():
		}
	}()
	code := exitOK
	for _, s := range c.Each() {
		if ctx.Err() != nil {
			break
		}
		s.AutoInitialize = true
		gw, err := newGateway(c, s, gateway.Options{Logger: log})
		if err != nil {
			return m.refuse(err)
		}
		began, name := time.Now(), cmp.Or(s.Name, s.Served())
		server, tools, err := gw.Try(ctx) // its timeouts bound it
		if err == nil {
			fmt.Fprintf(m.Stdout, "%s: %s %s, MCP %s, %d tools, %s\n", name, server.Name, server.Version,
				server.ProtocolVersion,
				tools, time.Since(began).Round(time.Millisecond))
		} else {
			code = exitFailure
			fmt.Fprintf(m.Stdout, "%s: FAILED: %v\n", name, err)
		}
		_ = gw.Shutdown(context.Background()) // ends the session
	}
	return code
}
