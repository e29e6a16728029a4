package check

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/advice"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/selection"
)

// Try opens a session with each server and prints what the server is, or why there
// is no session and what to do. It returns the exit code. After a signal it tries no more servers, but
// still ends the one that it has started; a second signal does not wait for that. open makes the gateway of a server.
func (k *Check) Try(c *config.Config, open func(*config.Server) (*gateway.Gateway, error),
	signals <-chan os.Signal) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	t := &trial{check: k, c: c, open: open}
	done := make(chan int, 1)
	go func() { done <- t.run(ctx) }() // ends with ctx, but for the end of the server
	select {
	case code := <-done:
		return code
	case <-signals:
		if name := t.name.Load(); name != nil {
			fmt.Fprintf(k.Live.Over(k.Stderr),
				"sse-server: Stopping: waiting for %s to end. The same signal again stops at once.\n", *name)
		}
		stop()
	}
	select {
	case code := <-done:
		return code
	case sig := <-signals:
		if gw := t.gateway.Load(); gw != nil {
			forprogram.Abort(gw)
		}
		return exit.BySignal(sig)
	}
}

// trial is a check of each server.
type trial struct {
	check *Check
	c     *config.Config
	open  func(*config.Server) (*gateway.Gateway, error)

	name    atomic.Pointer[string] // of the server that is being tried
	gateway atomic.Pointer[gateway.Gateway]
}

// run tries each server, and returns the exit code.
func (t *trial) run(ctx context.Context) int {
	code, out := exit.OK, t.check.out()
	for _, s := range t.c.Each() {
		if ctx.Err() != nil {
			break
		}
		s.AutoInitialize = true
		gw, err := t.open(s)
		if err != nil {
			return exit.Refuse(t.check.Stderr, err)
		}
		began, name := time.Now(), t.c.Title(s)
		t.name.Store(&name)
		t.gateway.Store(gw)
		shown := t.check.showWaiting(name+": starting", time.Duration(s.StartTimeout))
		found, err := forprogram.Of(gw).Try(ctx) // its timeouts bound it
		shown()
		took, fault := time.Since(began), cmp.Or(err, found.NoTools)
		switch {
		case ctx.Err() != nil:
			fmt.Fprintf(out, "%s: stopped\n", plaintext.Visible(name))
		case err != nil:
			fmt.Fprintf(out, "%s: FAILED: %s\n", plaintext.Visible(name),
				plaintext.Visible(plaintext.Words(err.Error())))
		default:
			server := strings.TrimSpace(found.Name + " " + found.Version)
			fmt.Fprintf(out, "%s: %s\n", plaintext.Visible(name),
				plaintext.Visible(summary(server, found, s.Rules(), startedIn(took, found))))
			for _, line := range unmet(s.Rules(), found) {
				fmt.Fprintf(out, "  %s\n", plaintext.Visible(line))
			}
		}
		switch {
		case ctx.Err() != nil:
			code = exit.Failure
		case fault != nil:
			code = exit.Failure
			fmt.Fprintf(out, "  what to do: %s\n", advice.For(s, fault.Error()))
		default:
			warm, _ := forprogram.Of(gw).Warm()
			t.check.tellLosses(t.c.Check.For, clients.Offer{
				Name: name, Boot: took, Tools: toolsOf(offered(s.Rules(), selection.Tools, found.Tools)),
				Ahead: warm > 0 || s.Remember && s.Kind() == config.OfCommand,
			})
		}
		_ = gw.Shutdown(context.Background()) // ends the session
	}
	return code
}

// tellLosses prints what a client, or each one, will lose of a server. For a single client it also
// prints what check cannot tell.
func (k *Check) tellLosses(client string, server clients.Offer) {
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
			fmt.Fprintf(k.Stdout, "  %s: %s\n", c.Name, plaintext.Visible(line))
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
