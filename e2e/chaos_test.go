package e2e

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	chaosFor  = flag.Duration("chaos.for", 5*time.Second, "time of TestChaos, over all its configurations; then they have to recover")
	chaosSeed = flag.Uint64("chaos.seed", 1, "seed of TestChaos")
)

// chaosWaits are short times, so that much happens in a run, and what follows from
// them: how long an answer may take (docs/reference/states.md), and a busy machine. A stream
// may be idle for longer than any request takes, 10 request timeouts: nobody closes it while
// others wait for theirs.
var chaosWaits = []string{
	"--initialization-timeout", "3s", "--start-timeout", "5s",
	"--request-timeout", "2s", "--idle-timeout", "30s",
}

const chaosBound = 2*(3*time.Second+20*time.Second) + time.Minute

// chaosRun is one configuration under chaos.
type chaosRun struct {
	*ledger
	t        *testing.T
	name     string
	seed     uint64
	g        *gateway
	urls     []string       // of the streams
	views    map[string]any // of the servers, if the streams are those of views
	tools    []string       // to call
	file     string         // the configuration of views
	calmFile string
	remote   *chaosRemote
	deaths   int // of children, and times at which the remote server broke off
}

// chaosConfigurations are the ones that differ most in what they run through.
// Each returns its flags, or the servers of a file.
func chaosConfigurations() map[string]func(c *chaosRun) (flags []string, servers map[string]any) {
	child := func(flags ...string) func(c *chaosRun) ([]string, map[string]any) {
		return func(c *chaosRun) ([]string, map[string]any) { return append(flags, c.child()...), nil }
	}
	loses := func(flags ...string) func(c *chaosRun) ([]string, map[string]any) {
		return func(c *chaosRun) ([]string, map[string]any) {
			return slices.Concat(flags, c.child(), []string{"--loses"}), nil
		}
	}
	return map[string]func(c *chaosRun) ([]string, map[string]any){
		"dedicated":     child(),
		"warm":          child("--warm", "2"),
		"one in flight": loses("--max-in-flight", "1"),
		"shared":        child("--sessions", "shared"),
		"shared, warm":  loses("--sessions", "shared", "--warm", "1"),
		"shared, few":   loses("--sessions", "shared", "--max-in-flight", "2"),
		"Streamable HTTP": func(c *chaosRun) ([]string, map[string]any) {
			return []string{"--url", c.remote.URL + "/mcp"}, nil
		},
		"HTTP+SSE": func(c *chaosRun) ([]string, map[string]any) {
			return []string{"--url", c.remote.URL + "/sse"}, nil
		},
		"several servers": func(c *chaosRun) ([]string, map[string]any) {
			return nil, map[string]any{
				"plain":  map[string]any{"command": c.child()[1:], "auto-initialize": false},
				"shared": map[string]any{"url": c.remote.URL + "/mcp", "sessions": "shared"},
				"each":   map[string]any{"command": c.child()[1:], "max-in-flight": 8},
			}
		},
		"view of three": func(c *chaosRun) ([]string, map[string]any) {
			c.tools = []string{"each__echo", "remote__echo", "shared__echo"}
			c.views = map[string]any{"team": map[string]any{"servers": map[string]any{"each": nil, "remote": nil, "shared": nil}}}
			return nil, map[string]any{
				"each":   map[string]any{"command": append(c.child()[1:], "--loses"), "max-in-flight": 1},
				"remote": map[string]any{"url": c.remote.URL + "/mcp"},
				"shared": map[string]any{"command": c.child()[1:], "sessions": "shared"},
			}
		},
	}
}

// quickChaos are the configurations of make test.
var quickChaos = map[string]bool{"dedicated": true, "shared, few": true, "Streamable HTTP": true, "view of three": true}

// child is the command line of a chaotic server.
func (c *chaosRun) child() []string {
	return self(c.t, chaosServerArg, "--seed", fmt.Sprint(c.seed), "--calm", c.calmFile)
}

// P1, P2 and P6 against the built binary: servers that die, stop, hang and lie at
// random, and clients that come, cancel and go at random. Each request of a stream
// or session that lives gets one answer in time, with what its own client has sent; afterwards
// the gateway serves as before, holds no more than before, and ends well.
func TestChaos(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	summaries := map[string]string{}
	t.Cleanup(func() {
		t.Logf("seed %d, %v", *chaosSeed, *chaosFor)
		for _, name := range slices.Sorted(maps.Keys(summaries)) {
			t.Logf("%-24s %s", name, summaries[name])
		}
	})
	configurations := chaosConfigurations()
	for i, name := range slices.Sorted(maps.Keys(configurations)) {
		if !all && !quickChaos[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel() // four at a time: see TestMain
			c := startChaos(t, name, *chaosSeed+uint64(i)<<32, configurations[name])
			lasts := *chaosFor
			if all {
				lasts /= 3 // ten, four at a time
			}
			c.run(lasts)
			counts, faults := c.report()
			for _, fault := range faults {
				t.Errorf("seed %d, %s: %s", *chaosSeed, name, fault)
			}
			if counts.requests == 0 || counts.results == 0 {
				t.Errorf("the run had %d requests and %d results: it shows nothing", counts.requests, counts.results)
			}
			mu.Lock()
			defer mu.Unlock()
			summaries[name] = fmt.Sprintf("deaths %d, %v", c.deaths, counts)
		})
	}
}

func startChaos(t *testing.T, name string, seed uint64, configure func(c *chaosRun) ([]string, map[string]any)) *chaosRun {
	t.Helper()
	c := &chaosRun{ledger: newLedger(chaosBound), t: t, name: name, seed: seed, calmFile: filepath.Join(t.TempDir(), "calm")}
	c.remote = startChaosRemote(t, &chaosMind{seed: seed, calm: c.isCalm, loses: name == "Streamable HTTP"})
	c.tools = []string{"echo"}
	flags, servers := configure(c)
	var urls map[string]string
	switch {
	case c.views != nil:
		c.file = writeViews(t, servers, c.views)
		c.g, urls = startViewsOf(t, c.file, chaosWaits...)
	case servers != nil:
		c.g, urls = startSeveral(t, servers, chaosWaits...)
	default:
		c.g = startGateway(t, slices.Concat(chaosWaits, flags)...)
		c.urls = []string{c.g.url}
		return c
	}
	c.urls = slices.Sorted(maps.Values(urls))
	return c
}

func (c *chaosRun) isCalm() bool { _, err := os.Stat(c.calmFile); return err == nil }

// setCalm makes servers serve well, or not.
func (c *chaosRun) setCalm(calm bool) {
	var err error
	if calm {
		err = os.WriteFile(c.calmFile, nil, 0o600)
	} else {
		err = os.Remove(c.calmFile)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// run is the run: servers that are well, chaos for the time, and recovery.
func (c *chaosRun) run(lasts time.Duration) {
	c.setCalm(true)
	c.serve("before the chaos")
	before := c.held()
	c.setCalm(false)
	over := make(chan struct{})
	survivors := make(chan *chaosClient, chaosClients)
	var wg sync.WaitGroup
	for n := range chaosClients {
		wg.Go(func() { survivors <- c.live(rand.New(rand.NewPCG(c.seed, uint64(n))), over) })
	}
	wg.Go(func() { c.monkey(over) })
	time.Sleep(lasts) // the run is as long as its user says
	close(over)
	wg.Wait()
	c.setCalm(true)
	c.recover(survivors)
	c.serve("after the chaos")
	c.assertHeld(before)
	c.g.stop() // asserts the exit code, and that no process is left
}

const chaosClients = 8

// live plays one client after the other, and returns the last one, whose stream is
// open.
func (c *chaosRun) live(rng *rand.Rand, over <-chan struct{}) *chaosClient {
	for {
		target := c.urls[rng.IntN(len(c.urls))]
		client, err := c.open(target, mannerAt(target, rng.IntN(len(manners))), rng)
		if err != nil {
			c.t.Errorf("seed %d, %s: open a stream: %v", *chaosSeed, c.name, err)
			return nil
		}
		client.act(1+rng.IntN(60), over)
		select {
		case <-over:
			return client
		default:
		}
		client.leave(rng.IntN(2) == 0)
	}
}

// monkey kills and stops children, troubles the remote server, and loads the views again.
func (c *chaosRun) monkey(over <-chan struct{}) {
	rng := rand.New(rand.NewPCG(c.seed, 1<<32))
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-over:
			return
		case <-time.After(100*time.Millisecond + upTo(rng, time.Second)):
		}
		if c.views != nil && rng.IntN(4) == 0 {
			c.reload(rng)
		}
		children := c.g.children()
		if several := len(c.urls) > 1 || c.views != nil; len(children) == 0 || several && rng.IntN(3) == 0 {
			c.remote.trouble(rng)
			c.deaths++
			continue
		}
		child := children[rng.IntN(len(children))]
		switch signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGSTOP}[rng.IntN(3)]; signal {
		case syscall.SIGSTOP:
			pause := upTo(rng, 4*time.Second)
			wg.Go(func() {
				_ = syscall.Kill(child.pid, syscall.SIGSTOP) // it may have ended
				time.Sleep(pause)
				if child.alive() {
					_ = syscall.Kill(child.pid, syscall.SIGCONT) // the same
				}
			})
		default:
			_ = syscall.Kill(child.pid, signal) // the same
			c.deaths++
		}
	}
}

// reload changes the rules of a view for a tool that nobody calls, so that all its lists change.
func (c *chaosRun) reload(rng *rand.Rand) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		c.t.Error(err)
		return
	}
	rule := fmt.Sprintf(`"each":{"exclude":["extra-%d"]}`, rng.IntN(3))
	if err := os.WriteFile(c.file, ruleOfEach.ReplaceAll(text, []byte(rule)), 0o600); err != nil {
		c.t.Error(err)
	}
	_ = syscall.Kill(c.g.cmd.Process.Pid, syscall.SIGHUP) // it has not ended
}

// ruleOfEach is what the view has of its first member: the servers come before the views, and are no such words.
var ruleOfEach = regexp.MustCompile(`"each":(null|\{"exclude":\[[^]]*\]\})`)

// recover expects each stream that is open to get all its answers, and to work.
func (c *chaosRun) recover(survivors <-chan *chaosClient) {
	var wg sync.WaitGroup
	for range chaosClients {
		client := <-survivors
		if client == nil {
			continue
		}
		wg.Go(func() {
			client.posts.Wait()
			client.settle()
			if got := client.result(patience); got != "result" {
				c.t.Errorf("seed %d, %s: with a server that is well, stream %d gets %q", *chaosSeed, c.name, client.number, got)
			}
			client.leave(true)
		})
	}
	wg.Wait()
}

// serve expects a new client of each server to be served.
func (c *chaosRun) serve(when string) {
	for _, target := range c.urls {
		for _, m := range []manner{manners[0], manners[len(manners)-1]} {
			client, err := c.open(target, m, rand.New(rand.NewPCG(c.seed, 2<<32)))
			if err != nil {
				c.t.Fatalf("%s: %v", when, err)
			}
			if got := client.result(patience); got != "result" {
				c.t.Errorf("seed %d, %s: %s a new client over %s gets %q", *chaosSeed, c.name, when, m.over, got)
			}
			client.leave(true)
		}
	}
}

// holdings are what a gateway holds.
type holdings struct {
	goroutines, files, children int
}

// held returns what the gateway holds once all streams have ended.
func (c *chaosRun) held() holdings {
	c.g.settled("mcp_sse_connections", 0)
	goroutines, _ := c.g.metric("go_goroutines")
	return holdings{int(goroutines), openFiles(c.t, c.g), len(c.g.children())}
}

// assertHeld waits until the gateway holds no more than before. A shared session or
// a warm server may be on its way.
func (c *chaosRun) assertHeld(before holdings) {
	c.t.Helper()
	const slack = 10
	var now holdings
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		now = c.held()
		if now.goroutines <= before.goroutines+slack && now.files <= before.files+slack && now.children <= before.children {
			return
		}
	}
	c.t.Errorf("seed %d, %s: the gateway holds %+v, before the chaos %+v", *chaosSeed, c.name, now, before)
}
