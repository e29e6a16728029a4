package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
)

// tryServers opens a session with each server and prints what the server is, or why there
// is no session and what to do. It returns the exit code. After a signal it tries no more servers, but
// still ends the one that it has started; a second signal does not wait for that.
func (m *Main) tryServers(c *config.Config, log *slog.Logger) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	t := &trial{m: m, c: c, log: log}
	done := make(chan int, 1)
	go func() { done <- t.run(ctx) }() // ends with ctx, but for the end of the server
	select {
	case code := <-done:
		return code
	case <-m.signals:
		if name := t.name.Load(); name != nil {
			fmt.Fprintf(m.live.over(m.Stderr), "sse-server: Stopping: waiting for %s to end. The same signal again stops at once.\n", *name)
		}
		stop()
	}
	select {
	case code := <-done:
		return code
	case sig := <-m.signals:
		if gw := t.gateway.Load(); gw != nil {
			forprogram.Abort(gw)
		}
		return exitSignal + int(sig.(syscall.Signal))
	}
}

// trial is a check of each server.
type trial struct {
	m   *Main
	c   *config.Config
	log *slog.Logger

	name    atomic.Pointer[string] // of the server that is being tried
	gateway atomic.Pointer[gateway.Gateway]
}

// run tries each server, and returns the exit code.
func (t *trial) run(ctx context.Context) int {
	code, out := exitOK, t.m.live.over(t.m.Stdout)
	for _, s := range t.c.Each() {
		if ctx.Err() != nil {
			break
		}
		s.AutoInitialize = true
		gw, err := newGateway(t.c, s, gateway.Options{Logger: t.log})
		if err != nil {
			return t.m.refuse(err)
		}
		began, name := time.Now(), t.c.Title(s)
		t.name.Store(&name)
		t.gateway.Store(gw)
		shown := t.m.showWaiting(name+": starting", time.Duration(s.StartTimeout))
		found, err := forprogram.Of(gw).Try(ctx) // its timeouts bound it
		shown()
		took, fault := time.Since(began), cmp.Or(err, found.NoTools)
		switch {
		case ctx.Err() != nil:
			fmt.Fprintf(out, "%s: stopped\n", visible(name))
		case err != nil:
			fmt.Fprintf(out, "%s: FAILED: %s\n", visible(name), visible(plainText(err.Error())))
		default:
			server := strings.TrimSpace(found.Name + " " + found.Version)
			fmt.Fprintf(out, "%s: %s\n", visible(name), visible(summary(server, found, startedIn(took, found))))
		}
		switch {
		case ctx.Err() != nil:
			code = exitFailure
		case fault != nil:
			code = exitFailure
			fmt.Fprintf(out, "  what to do: %s\n", remedyFor(s, fault.Error()))
		default:
			warm, _ := forprogram.Of(gw).Warm()
			t.m.tellLosses(t.c.Check.For, clients.Offer{
				Name: name, Boot: took, Tools: toolsOf(found.Tools),
				Ahead: warm > 0 || s.Remember && s.Kind() == config.OfCommand,
			})
		}
		_ = gw.Shutdown(context.Background()) // ends the session
	}
	return code
}

// silence is how long check may say nothing to a pipe.
const silence = 3 * time.Second

// showWaiting shows for what the check waits: all the time on a terminal, else once on stderr. The caller
// must call end.
func (m *Main) showWaiting(what string, limit time.Duration) (end func()) {
	began := time.Now()
	text := func() string {
		return fmt.Sprintf("%s (%.0f s), for %v at most; Ctrl-C ends it", what, time.Since(began).Seconds(), limit)
	}
	told, over, ended := m.live.terminal != nil, make(chan struct{}), make(chan struct{})
	go func() { // ends with end
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			m.live.show(text())
			select {
			case <-tick.C:
			case <-over:
				m.live.show("")
				return
			}
			if !told && time.Since(began) > cmp.Or(m.Silence, silence) {
				told = true
				fmt.Fprintln(m.Stderr, "sse-server: "+text())
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// tellLosses prints what a client, or each one, will lose of a server. For a single client it also
// prints what check cannot tell.
func (m *Main) tellLosses(client string, server clients.Offer) {
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
			fmt.Fprintf(m.Stdout, "  %s: %s\n", c.Name, visible(line))
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
