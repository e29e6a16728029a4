package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// maxStartChecks is how many servers start at the same time for their start check.
const maxStartChecks = 8

// quiet is how long a server that has failed is left alone, so that the reason stays to be read: starts
// ahead of clients would fail again and again.
const quiet = 10 * time.Second

// headStart is how long a server of which nothing is known has not failed when its warm servers start beside
// the check.
const headStart = 500 * time.Millisecond

// startCheck starts each server once after the banner, and says what it is.
type startCheck struct {
	out  io.Writer
	live *liveLine
	wide int // the length of the longest name

	mu      sync.Mutex // guards what follows, and out
	waiting []string   // the names of servers that are starting
	began   time.Time
}

// checkStarts starts each server once, and says on stdout what it is, or why it does not start and what to do.
// The warm servers start at the same time if something is remembered of the server. Else they start once the
// check has gone on for a while, so that one that fails at once is not started again and again; and after it if
// the command may have to install a package: two that do so at the same time collide. checkStarts returns when
// each server has answered or failed, or when ctx ends.
func (m *Main) checkStarts(ctx context.Context, gateways map[string]*gateway.Gateway, c *config.Config) {
	all := &startCheck{out: m.live.over(m.Stdout), live: m.live, began: time.Now()}
	for _, s := range c.Each() {
		all.wide = max(all.wide, len(c.Title(s)))
	}
	places := make(chan struct{}, maxStartChecks)
	var checks sync.WaitGroup
	for _, s := range c.Each() {
		gw, name := gateways[s.Name], c.Title(s)
		if why := unchecked(c, s); why != "" {
			gw.Start()
			all.say(name, "not started: "+why)
			continue
		}
		if gw.Knows() {
			gw.Start()
		}
		checks.Go(func() { all.check(ctx, gw, s, name, places) }) // ends with ctx, or with the times of the gateway
	}
	done := make(chan struct{})
	go func() { // ends with done
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				all.refresh()
			case <-done:
				return
			}
		}
	}()
	checks.Wait()
	close(done)
	all.live.show("")
}

// check is that of one server, at one of a number of places. Its warm servers have started when it returns,
// unless ctx has ended.
func (all *startCheck) check(ctx context.Context, gw *gateway.Gateway, s *config.Server, name string, places chan struct{}) {
	places <- struct{}{}
	all.begin(name)
	began := time.Now()
	early := time.AfterFunc(headStart, func() {
		if !s.Installs() {
			gw.Start()
		}
	})
	found, err := gw.CheckStart(ctx)
	early.Stop()
	all.end(name)
	<-places
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		lines := []string{describe(cmp.Or(found.Version, found.Name), found, s.Sessions != gateway.SessionsShared, time.Since(began))}
		if found.NoTools != nil {
			lines = append(lines, "What to do: "+remedyFor(s, found.NoTools.Error())+".")
		}
		all.say(name, lines...)
	default:
		all.say(name, failed(s, time.Since(began), err)...)
		select {
		case <-time.After(quiet):
		case <-ctx.Done():
			return
		}
	}
	gw.Start()
}

// unchecked returns why a server is not started for the start check, or nothing.
func unchecked(c *config.Config, s *config.Server) string {
	switch {
	case s.StartsNothing() && !c.Given("start-check"):
		return "with --warm 0 clients start it"
	case !s.AutoInitialize:
		return "with --no-auto-initialize each client does that"
	case s.PrincipalEnv != "" || len(s.ForwardHeader) > 0 || s.ForwardsTokens():
		return "it gets something of each client"
	}
	return ""
}

// begin shows that a server is starting, and end that it is not any more.
func (all *startCheck) begin(name string) {
	all.mu.Lock()
	all.waiting = append(all.waiting, name)
	all.mu.Unlock()
	all.refresh()
}

func (all *startCheck) end(name string) {
	all.mu.Lock()
	all.waiting = slices.DeleteFunc(all.waiting, func(other string) bool { return other == name })
	all.mu.Unlock()
	all.refresh()
}

// refresh updates the live line.
func (all *startCheck) refresh() {
	all.mu.Lock()
	text := ""
	if len(all.waiting) > 0 {
		text = fmt.Sprintf("%s starting (%.0f s)", strings.Join(all.waiting, ", "), time.Since(all.began).Seconds())
	}
	all.mu.Unlock()
	all.live.show(text)
}

// say prints lines about a server, under its name.
func (all *startCheck) say(name string, lines ...string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "%-*s  %s\n", all.wide, visible(name), visible(line))
		name = ""
	}
	_, _ = io.WriteString(all.out, b.String())
}

// describe says what a server is and has, by the words for it. It was asked for no lists if its session is that
// of its clients, too.
func describe(server string, found handshake.Found, asked bool, took time.Duration) string {
	text := fmt.Sprintf("%s, MCP %s: ", server, found.ProtocolVersion)
	switch {
	case !asked:
		return fmt.Sprintf("%sone session for all (%.1f s)", text, took.Seconds())
	case found.NoTools != nil:
		return fmt.Sprintf("%s%s (%.1f s)", text, noTools(found), took.Seconds())
	}
	text += count(len(found.Tools), "tool")
	if found.Prompts > 0 {
		text += ", " + count(found.Prompts, "prompt")
	}
	if found.Resources > 0 {
		text += ", " + count(found.Resources, "resource")
	}
	memory := ""
	if found.Memory > 0 {
		memory = fmt.Sprintf(", %d MiB", (found.Memory+1<<19)>>20)
	}
	return fmt.Sprintf("%s (%.1f s%s)", text, took.Seconds(), memory)
}

// noTools says why there is no list of tools.
func noTools(found handshake.Found) string {
	return "no list of tools: " + strings.TrimPrefix(plainText(found.NoTools.Error()), "list tools: ")
}

// count returns a number of things, which are named in the plural too unless that just has an s.
func count(n int, thing string, plural ...string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %s", n, append(plural, thing+"s")[0])
}

// failed says why a server has not started, with what it wrote, and what to do.
func failed(s *config.Server, took time.Duration, err error) []string {
	text := plainText(strings.TrimPrefix(err.Error(), "initialization failed: "))
	reason, words := text, ""
	for _, before := range []string{"; stderr: ", "; its stderr says: "} {
		if was, says, ok := strings.Cut(text, before); ok {
			reason, words = was, says
		}
	}
	lines := []string{fmt.Sprintf("FAILED after %.1f s: %s", took.Seconds(), reason)}
	if words != "" {
		for line := range strings.SplitSeq(words, upstream.LineBreak) {
			lines = append(lines, "  | "+line)
		}
	}
	return append(lines, "What to do: "+remedyFor(s, text)+".", "Clients are served all the same: each start tries it again.")
}
