package check

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/advice"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/observe"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/terminal"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
)

// headStart is how long a server of which nothing is known has not failed when its warm servers start beside
// the check.
const headStart = 500 * time.Millisecond

// startCheck starts each server once after the banner, and says what it is.
type startCheck struct {
	out  io.Writer
	live *terminal.Line
	log  *observe.Starts
	wide int // the length of the longest name

	failed atomic.Bool // whether a server has not started

	mu      sync.Mutex    // guards what follows, and out
	waiting []*starting   // those that are starting
	after   time.Duration // when a start is so late that it is said what is known of it
	began   time.Time
	next    time.Duration // after which a pipe gets a line about those that are still starting
}

// starting is a server that is starting.
type starting struct {
	name   string
	server *config.Server
	gw     *gateway.Gateway
	began  time.Time
	// told says that it was said what is known of it, and toldQuiet that it was before it had written anything.
	told, toldQuiet bool
}

// Starts says on stdout what each server is: from memory if it is remembered, else by starting it once; or
// why it does not start, and what to do. As many start at a time as there are processors. Warm servers of one
// that is checked start once the check has gone on for a while, so that one that fails at once is not started
// again and again; and after it if the command may have to install a package: two that do so at the same time
// collide. Starts returns when each server has answered or failed, or when ctx ends.
func (k *Check) Starts(ctx context.Context, gateways map[string]*gateway.Gateway, c *config.Config) {
	all := &startCheck{out: k.out(), live: k.Live, log: k.Log, began: time.Now(), next: k.silence(), after: k.silence()}
	for _, s := range c.Each() {
		all.wide = max(all.wide, len(c.Title(s)))
	}
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	var checks sync.WaitGroup
	for _, s := range c.Each() {
		gw, name := gateways[s.Name], c.Title(s)
		if why := unchecked(s); why != "" {
			gw.Start()
			all.say(name, "not checked: "+why)
			continue
		}
		if found, ok := forprogram.Of(gw).Remembered(); ok {
			gw.Start()
			lines := []string{summary(titleOf(found), found, s.Rules(), fromMemory)}
			all.say(name, append(lines, unmet(s.Rules(), found)...)...)
			continue
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
	all.live.Show("")
	if all.failed.Load() && ctx.Err() == nil {
		fmt.Fprintln(all.out, "sse-server keeps running: each client that connects starts the server again.")
	}
}

// check is that of one server, at one of a number of places. Its warm servers have started when it returns,
// unless ctx has ended.
func (all *startCheck) check(
	ctx context.Context, gw *gateway.Gateway, s *config.Server, name string, places chan struct{},
) {
	places <- struct{}{}
	began := time.Now()
	one := &starting{name: name, server: s, gw: gw, began: began}
	all.log.Begin(name)
	all.addWaiting(one)
	early := time.AfterFunc(headStart, func() {
		if !s.Installs() {
			gw.Start()
		}
	})
	found, err := forprogram.Of(gw).CheckStart(ctx)
	early.Stop()
	all.removeWaiting(one)
	<-places
	all.log.End(name, err != nil && ctx.Err() == nil)
	switch {
	case ctx.Err() != nil:
		all.say(name, "not checked: stopped")
		return
	case err == nil:
		lines := []string{summary(titleOf(found), found, s.Rules(), startedIn(time.Since(began), found))}
		lines = append(lines, unmet(s.Rules(), found)...)
		if found.NoTools != nil {
			lines = append(lines, "What to do: "+advice.For(s, found.NoTools.Error()))
		}
		all.say(name, lines...)
	case needsLogin(s, err):
		all.say(name, waitingForLogin(s, time.Since(began), err)...)
	default:
		all.failed.Store(true)
		all.say(name, failed(s, time.Since(began), err)...)
	}
	gw.Start()
}

// unchecked returns why a server is not started for the start check, or nothing.
func unchecked(s *config.Server) string {
	switch {
	case !s.AutoInitialize:
		return "with --no-auto-initialize each client initializes it"
	case s.PrincipalEnv != "" || len(s.ForwardHeader) > 0 || s.ForwardsTokens():
		return "it gets something of each client"
	case s.Remote().IsPerPrincipal():
		return errOfPersons.Error()
	}
	return ""
}

// addWaiting shows that a server is starting, and removeWaiting that it is not any more.
func (all *startCheck) addWaiting(one *starting) {
	all.mu.Lock()
	all.waiting = append(all.waiting, one)
	all.mu.Unlock()
	all.refresh()
}

func (all *startCheck) removeWaiting(one *starting) {
	all.mu.Lock()
	all.waiting = slices.DeleteFunc(all.waiting, func(other *starting) bool { return other == one })
	all.mu.Unlock()
	all.refresh()
}

// refresh updates the live line, or tells a pipe now and then what is still starting. It tells once what is known of
// each that is late.
func (all *startCheck) refresh() {
	all.mu.Lock()
	text, took := "", time.Since(all.began)
	var names []string
	for _, one := range all.waiting {
		names = append(names, one.name)
	}
	if len(names) > 0 {
		text = fmt.Sprintf("%s starting (%.0f s)", strings.Join(names, ", "), took.Seconds())
	}
	isDue := !all.live.IsShown() && took >= all.next
	if isDue {
		all.next = 3 * took
	}
	for _, one := range all.waiting {
		var lines []string
		isLate := time.Since(one.began) >= all.after
		if isLate {
			all.log.Late(one.name)
		}
		if !one.told && isLate {
			words, excuse := forprogram.Of(one.gw).Saying()
			lines = late(one.server, words, excuse, time.Since(one.began) >= quiet*all.after)
			switch {
			case len(lines) == 0:
			case words != "":
				one.told = true
			case one.toldQuiet: // what it writes would be news
				lines = nil
			default:
				one.toldQuiet = true
			}
		}
		if isDue || len(lines) > 0 {
			still := fmt.Sprintf("still starting (%.0f s)", took.Seconds())
			all.sayLocked(one.name, append([]string{still}, lines...)...)
		}
	}
	all.mu.Unlock()
	all.live.Show(text)
}

// say prints lines about a server, under its name.
func (all *startCheck) say(name string, lines ...string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.sayLocked(name, lines...)
}

func (all *startCheck) sayLocked(name string, lines ...string) {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "%-*s  %s\n", all.wide, plaintext.Visible(name), plaintext.Visible(line))
		name = ""
	}
	_, _ = io.WriteString(all.out, b.String())
}

// quiet is how many times as long a server may be late of which nothing is known: some write nothing, or that they
// start, and take their time.
const quiet = 2

// stdioMode is met by what servers write that say themselves that they serve MCP on stdin and stdout.
var stdioMode = regexp.MustCompile(`(?i)\bstdio\b`)

// late says what is known of a server that has not answered yet; nothing if that is nothing. isQuietForLong says that
// one of which nothing is known is late, too, unless it says that it is in its stdio mode.
func late(s *config.Server, words, excuse string, isQuietForLong bool) (lines []string) {
	reason := "it has not answered initialize" + excuse
	what := advice.Known(s, reason, words)
	isQuiet := words == "" && excuse == ""
	switch {
	case s.Kind() != config.OfCommand:
		return nil
	case what == "" && (!isQuietForLong || s.Installs() || stdioMode.MatchString(words)): // it may take its time
		return nil
	case what == "":
		what = "wait, if it boots for long; else name a program that speaks MCP on stdin and stdout: " +
			"many need an argument such as stdio"
	}
	lines = []string{plaintext.Words(reason)}
	if words != "" {
		for line := range strings.SplitSeq(plaintext.Words(words), stdio.LineBreak) {
			lines = append(lines, "  | "+line)
		}
	}
	if isQuiet {
		lines[0] += ", and has written nothing"
	}
	return append(lines, "What to do: "+what)
}

// failed says why a server has not started, with what it wrote, and what to do.
func failed(s *config.Server, took time.Duration, err error) []string {
	text := plaintext.Words(err.Error())
	reason, words := advice.Apart(text)
	lines := []string{fmt.Sprintf("FAILED after %.1f s: %s", took.Seconds(), reason)}
	if words != "" {
		for line := range strings.SplitSeq(words, stdio.LineBreak) {
			lines = append(lines, "  | "+line)
		}
	}
	return append(lines, "What to do: "+advice.For(s, text))
}

// needsLogin reports whether a server has not started because it waits for a person who logs in. A login that has ended
// is not the reason why it cannot be reached.
func needsLogin(s *config.Server, err error) bool {
	command, is := s.Remote().LoginNeeded()
	return is && strings.Contains(err.Error(), command)
}

// waitingForLogin says that a server waits for a login, and how a person logs in.
func waitingForLogin(s *config.Server, took time.Duration, err error) []string {
	return []string{
		fmt.Sprintf("waiting for a login (%.1f s)", took.Seconds()),
		"What to do: " + advice.For(s, err.Error()),
		"After the login its tools are there, without a new start.",
	}
}
