package check

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/advice"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/naming"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
)

// Try opens a session with each server that is chosen and prints what the server is, or why there is no session and
// what to do; then what each view has of them. It returns the exit code. After a signal it tries no more servers, but
// still ends the one that it has started; a second signal does not wait for that. open makes the gateway of a server.
func (k *Check) Try(c *config.Config, open func(*config.Server) (*gateway.Gateway, error),
	signals <-chan os.Signal) int {
	t := &trial{check: k, c: c, starts: newStarts(open), read: make(map[*config.Server]*reading)}
	return k.untilSignal(t.run, t.starts, signals)
}

// untilSignal runs what opens sessions until it ends, and returns its exit code. The first signal ends its context, the
// second one the processes of the servers that are starting.
func (k *Check) untilSignal(run func(context.Context) int, starts *starts, signals <-chan os.Signal) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan int, 1)
	go func() { done <- run(ctx) }() // ends with ctx, but for the end of the servers
	select {
	case code := <-done:
		return code
	case <-signals:
		if names := starts.names(); names != "" {
			fmt.Fprintf(k.Live.Over(k.Stderr),
				"sse-server: Stopping: waiting for %s to end. The same signal again stops at once.\n", names)
		}
		stop()
	}
	select {
	case code := <-done:
		return code
	case sig := <-signals:
		starts.abort()
		return exit.BySignal(sig)
	}
}

// starts are the servers that are started to be looked at. It is safe for concurrent use.
type starts struct {
	open func(*config.Server) (*gateway.Gateway, error)

	mu  sync.Mutex // guards now
	now map[*gateway.Gateway]string
}

func newStarts(open func(*config.Server) (*gateway.Gateway, error)) *starts {
	return &starts{open: open, now: make(map[*gateway.Gateway]string)}
}

// openGateway opens the gateway of a server, which has a name for people. end ends it, and its session.
func (s *starts) openGateway(server *config.Server, name string) (gw *gateway.Gateway, end func(), err error) {
	server.AutoInitialize = true
	gw, err = s.open(server)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now[gw] = name
	return gw, func() {
		_ = gw.Shutdown(context.Background())
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.now, gw)
	}, nil
}

// names returns those of the servers that have not ended.
func (s *starts) names() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Values(s.now)), ", ")
}

// abort ends the processes of the servers at once.
func (s *starts) abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for gw := range s.now {
		forprogram.Abort(gw)
	}
}

// isAhead reports whether a server is started ahead of its clients, or its tools are remembered.
func isAhead(s *config.Server, gw *gateway.Gateway) bool {
	warm, _ := forprogram.Of(gw).Warm()
	return warm > 0 || s.Remember && s.Kind() == config.OfCommand
}

// trial is a check of each server that is chosen.
type trial struct {
	check  *Check
	c      *config.Config
	starts *starts
	read   map[*config.Server]*reading
}

// run tries each server, looks at each view, and returns the exit code.
func (t *trial) run(ctx context.Context) int {
	code := exit.OK
	servers, views := t.c.Chosen()
	for _, s := range t.c.ChosenServers() {
		if ctx.Err() != nil {
			return exit.Failure
		}
		switch err := t.try(ctx, s, slices.Contains(servers, s)); {
		case err != nil:
			return exit.Refuse(t.check.Stderr, err)
		case t.read[s].isFailed():
			code = exit.Failure
		}
	}
	for _, v := range views {
		if ctx.Err() != nil {
			break
		}
		o, err := offerOfView(v, func(s *config.Server) *reading { return t.read[s] })
		if err != nil {
			return exit.Refuse(t.check.Stderr, err)
		}
		out := t.check.out()
		fmt.Fprintf(out, "%s: %s\n", plaintext.Visible(o.name), plaintext.Visible(o.summary()))
		for _, line := range o.warnings() {
			fmt.Fprintf(out, "  %s\n", plaintext.Visible(line))
		}
		t.check.tellLosses(t.c.Check.For, o.toClients())
	}
	return code
}

// try tries one server. isChosen says that clients reach it by itself, so that they can lose something of it. The error
// says what is wrong with the configuration.
func (t *trial) try(ctx context.Context, s *config.Server, isChosen bool) error {
	r := &reading{server: s, name: t.c.Title(s)}
	if s.Remote().IsPerPrincipal() {
		r.err, t.read[s] = errOfPersons, r
		fmt.Fprintf(t.check.out(), "%s: not checked: %v\n", plaintext.Visible(r.name), r.err)
		return nil
	}
	gw, end, err := t.starts.openGateway(s, r.name)
	if err != nil {
		return err
	}
	defer end()
	out, began := t.check.out(), time.Now()
	shown := t.check.showWaiting(r.name+": starting", time.Duration(s.StartTimeout))
	told := t.check.tellLate(gw, s, r.name)
	r.found, err = t.open(ctx, gw) // its timeouts bound it
	told()
	shown()
	r.took, r.ahead, r.err = time.Since(began), isAhead(s, gw), cmp.Or(err, r.found.NoTools)
	t.read[s] = r
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(out, "%s: stopped\n", plaintext.Visible(r.name))
		r.err = ctx.Err()
		return nil
	case err != nil:
		fmt.Fprintf(out, "%s: FAILED: %s\n", plaintext.Visible(r.name),
			plaintext.Visible(plaintext.Words(err.Error())))
	default:
		server := strings.TrimSpace(r.found.Name + " " + r.found.Version)
		fmt.Fprintf(out, "%s: %s\n", plaintext.Visible(r.name),
			plaintext.Visible(summary(server, r.found, s.Rules(), startedIn(r.took, r.found))))
		for _, line := range unmet(s.Rules(), r.found) {
			fmt.Fprintf(out, "  %s\n", plaintext.Visible(line))
		}
	}
	switch {
	case r.err != nil:
		fmt.Fprintf(out, "  what to do: %s\n", advice.For(s, r.err.Error()))
	case isChosen:
		t.check.tellLosses(t.c.Check.For, offerOf(r).toClients())
	}
	return nil
}

// open opens a session, and says what the server is.
func (t *trial) open(ctx context.Context, gw *gateway.Gateway) (handshake.Found, error) {
	if t.c.Check.Learn {
		return forprogram.Of(gw).CheckStart(ctx)
	}
	return forprogram.Of(gw).Try(ctx)
}

// tellLate says once what is known of a server that is late, while it is waited for. The caller must call end.
func (k *Check) tellLate(gw *gateway.Gateway, s *config.Server, name string) (end func()) {
	if len(s.Command) > 0 && naming.ProgramOf(s.Command) == "sse-server" { // which has servers of its own to wait for
		return func() {}
	}
	began, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() { // ends with done
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			took := time.Since(began)
			if took < k.silence() {
				continue
			}
			words, excuse := forprogram.Of(gw).Saying()
			lines := late(s, words, excuse, took >= quiet*k.silence())
			if len(lines) == 0 {
				continue
			}
			fmt.Fprintf(k.out(), "%s: still starting (%.0f s)\n", plaintext.Visible(name), took.Seconds())
			for _, line := range lines {
				fmt.Fprintf(k.out(), "  %s\n", plaintext.Visible(line))
			}
			return
		}
	}()
	return func() {
		close(done)
		<-ended
	}
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
