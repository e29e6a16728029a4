package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/clients"
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
		began, name := time.Now(), c.Title(s)
		found, err := gw.Try(ctx) // its timeouts bound it
		if err == nil {
			took := time.Since(began)
			fmt.Fprintf(m.Stdout, "%s: %s %s, MCP %s, %d tools, %s\n", name, found.Name, found.Version,
				found.ProtocolVersion, len(found.Tools), took.Round(time.Millisecond))
			m.tellLosses(c.Check.For, clients.Server{
				Name: cmp.Or(s.Name, found.Name), Boot: took, Tools: toolsOf(found.Tools),
				Ahead: gw.Warm() > 0 || s.Remember && s.Kind() == config.OfCommand,
			})
		} else {
			code = exitFailure
			fmt.Fprintf(m.Stdout, "%s: FAILED: %v\n", name, err)
		}
		_ = gw.Shutdown(context.Background()) // ends the session
	}
	return code
}

// tellLosses prints what a client, or each one, will lose of a server. For a single client it also
// prints what check cannot tell.
func (m *Main) tellLosses(client string, server clients.Server) {
	for _, c := range clients.All {
		if client != c.Name && client != config.AllClients {
			continue
		}
		lines := c.Losses(server)
		if len(lines) == 0 {
			lines = []string{"nothing is lost that is known of"}
		}
		if client != config.AllClients {
			for _, untried := range c.Untried() {
				lines = append(lines, "not tried: "+untried)
			}
			if unknown := c.Unknown(); len(unknown) > 0 {
				lines = append(lines, "unknown: "+strings.Join(unknown, ", "))
			}
		}
		for _, line := range lines {
			fmt.Fprintf(m.Stdout, "  %s: %s\n", c.Name, line)
		}
	}
}

// toolsOf reads tools as far as clients have limits for them.
func toolsOf(tools []json.RawMessage) (all []clients.Tool) {
	for _, raw := range tools {
		var tool clients.Tool
		_ = json.Unmarshal(raw, &tool) // of one that is no tool, clients see as little
		all = append(all, tool)
	}
	return all
}
