package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// errChecked is the close reason of a session that was only to be tried.
var errChecked = errors.New("the check is over")

// tryServers opens a session with each server and prints what the server is, or why there
// is no session. It returns the exit code. A signal ends it.
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
		name := cmp.Or(s.Name, s.Served())
		found, err := try(ctx, s, log.With("server", name))
		if err != nil {
			code, found = exitFailure, "FAILED: "+err.Error()
		}
		fmt.Fprintf(m.Stdout, "%s: %s\n", name, found)
	}
	return code
}

// try opens a session with a server within its start timeout, and returns what the server
// is.
func try(ctx context.Context, s *config.Server, log *slog.Logger) (found string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.StartTimeout))
	defer cancel()
	began, up := time.Now(), upstreamOf(s)
	if o, ok := up.(interface {
		Observed(*slog.Logger, *metrics.Metrics) upstream.Upstream
	}); ok {
		up = o.Observed(log, nil)
	}
	conn, err := up.Dial(ctx)
	if err != nil {
		return "", err
	}
	session := multiplex.New(conn, multiplex.Options{Logger: log})
	defer func() {
		session.Close(errChecked)
		<-session.Done()
	}()
	result, err := handshake.Run(ctx, session, handshake.Synthetic(handshake.ClientInfo{Name: "mcp-sse", Version: buildinfo.Read().Version}))
	if err != nil {
		return "", err
	}
	tools, server := 0, result.Server()
	if result.Advertises("tools") {
		if tools, err = countTools(ctx, session); err != nil {
			return "", fmt.Errorf("list tools: %w", err)
		}
	}
	return fmt.Sprintf("%s %s, MCP %s, %d tools, %s", server.Name, server.Version, server.ProtocolVersion, tools,
		time.Since(began).Round(time.Millisecond)), nil
}

// countTools returns the number of the server's tools.
func countTools(ctx context.Context, session *multiplex.Session) (n int, err error) {
	for params := json.RawMessage(nil); ; {
		response, err := session.Call(ctx, mcp.MethodListTools, params)
		if err != nil {
			return 0, err
		}
		if fault := response.Error(); fault != nil {
			return 0, fmt.Errorf("the server answered %s", fault)
		}
		list, _ := jsonrpc.Member(response.Result(), "tools")
		jsonrpc.Each(list, func(json.RawMessage) { n++ })
		cursor, more := jsonrpc.Member(response.Result(), "nextCursor")
		if !more || string(cursor) == "null" {
			return n, nil
		}
		params = json.RawMessage(`{"cursor":` + string(cursor) + `}`)
	}
}
