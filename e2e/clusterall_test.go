//go:build all

package e2e

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var crowd = flag.Int("crowd", 10, "TypeScript clients of each SDK and transport, in the tests of replicas")

// crowds are TypeScript clients that call all the time, by SDK and transport.
type crowds struct {
	t      *testing.T
	all    *replicas
	ledger string
	by     map[string]*driver
}

func startCrowds(t *testing.T) *crowds {
	t.Helper()
	c := &crowds{t, startReplicas(t, fake(t)...), filepath.Join(t.TempDir(), "ledger"), map[string]*driver{}}
	for over, at := range c.all.at {
		timeout := "60000"
		if over == overSSE {
			timeout = "5000" // calls that were under way have lost their stream
		}
		for _, sdk := range []string{"sdk1", "client2"} {
			c.by[fmt.Sprintf("%s over %s", sdk, over)] = startScript(t, "crowd.mjs", "--client", sdk, "--url", at, "--transport", string(over),
				"--clients", fmt.Sprint(*crowd), "--file", c.ledger, "--timeout", timeout)
		}
	}
	return c
}

// goOn waits until each client has had answers to calls that began after it was called.
func (c *crowds) goOn() {
	c.t.Helper()
	for name, d := range c.by {
		r, err := d.step(within(c.t), "progress")
		if err != nil {
			c.t.Fatalf("%s: %v", name, err)
		}
		c.t.Logf("%s: all go on after %d ms", name, r.MS)
	}
}

// end ends the calls, checks that what was answered ran, and nothing twice but what may, and
// returns the reports.
func (c *crowds) end() map[string]reply {
	c.t.Helper()
	reports := map[string]reply{}
	var answered []string
	for name, d := range c.by {
		r, err := d.step(within(c.t), "report")
		if err != nil {
			c.t.Fatalf("%s: %v", name, err)
		}
		reports[name], answered = r, append(answered, r.Answered...)
		c.t.Logf("%s: %d answered, errors: %d retryable, %d not, %d without data; %d without an answer; an error took %d ms at most; %v",
			name, len(r.Answered), r.Retryable, r.NotRetryable, r.Unsent, r.Silent, r.Slowest, r.Errors)
	}
	data, err := os.ReadFile(c.ledger)
	if err != nil {
		c.t.Fatal(err)
	}
	ran := map[string]int{}
	for line := range strings.Lines(string(data)) {
		call := strings.TrimSpace(line)
		if ran[call]++; ran[call] > 1 && !strings.HasPrefix(call, "look ") {
			c.t.Errorf("%q ran %d times", call, ran[call])
		}
	}
	for _, call := range answered {
		if ran[call] == 0 {
			c.t.Errorf("%q was answered, and has not run", call)
		}
	}
	return reports
}

// When the replicas are replaced one after the other, no client over /mcp notices, and those
// over /sse go on.
func TestRollingRestart(t *testing.T) {
	c := startCrowds(t)
	done, calls := make(chan struct{}), sync.WaitGroup{}
	for _, version := range []string{"2025-11-25", ""} { // with a session, and without
		client := openGoSDK(version)(t, c.all.at[streamable], streamable, "")
		if err := client.connect(within(t)); err != nil {
			t.Fatal(err)
		}
		calls.Go(func() { // ends with done
			for i := 0; ; i++ {
				select {
				case <-done:
					t.Logf("go-sdk %s: %d calls", version, i)
					return
				default:
				}
				name := fmt.Sprintf("record go-sdk-%s-%d", version, i)
				if _, err := client.callTool(within(t), "record", map[string]any{"file": c.ledger, "message": name, "how": "short"}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	c.goOn()
	for i := range 3 {
		old := c.all.serving[0]
		next := c.all.launch(fmt.Sprintf("next%d", i), "12s")
		c.all.await(next)
		c.all.replace(old, next)
		old.stop()
		c.goOn()
	}
	close(done)
	calls.Wait()
	for name, r := range c.end() {
		if strings.HasSuffix(name, string(streamable)) && r.Retryable+r.NotRetryable+r.Unsent+r.Silent > 0 {
			t.Errorf("%s: calls failed: %v", name, r.Errors)
		}
	}
}

// When a replica is killed, all clients go on, each call over /mcp ends, and none runs twice.
func TestReplicaIsKilled(t *testing.T) {
	c := startCrowds(t)
	c.goOn()
	for range 2 {
		victim := c.all.serving[0]
		victim.kill()
		c.all.replace(victim, nil)
		c.goOn()
	}
	for name, r := range c.end() {
		if strings.HasSuffix(name, string(streamable)) && r.Silent > 0 {
			t.Errorf("%s: %d calls got no answer", name, r.Silent)
		}
	}
}

// While NATS is away, each replica serves its own sessions, and refuses others at once; so it
// is for a replica that NATS does not hear. Then all go on.
func TestNATSFails(t *testing.T) {
	c := startCrowds(t)
	c.goOn()
	own := map[*gateway]string{}
	for _, g := range c.all.serving {
		_, header := g.post("", "tools/list")
		own[g] = header.Get("Mcp-Session-Id")
	}
	fail := func(what string, break_, mend func(), alone *gateway) {
		began, deadline := time.Now(), within(t)
		break_()
		for again := ""; again == ""; time.Sleep(50 * time.Millisecond) { // what was on its way waits longer
			status, header := alone.post(own[c.all.serving[1]], "tools/list")
			if again = header.Get("Retry-After"); deadline.Err() != nil {
				t.Fatalf("%s: a foreign request got %d", what, status)
			}
		}
		noticed := time.Since(began)
		if status, _ := alone.post(own[alone], "tools/list"); status != http.StatusOK {
			t.Errorf("%s: a request of its own got %d", what, status)
		}
		mend()
		c.goOn()
		t.Logf("%s: noticed after %v, all go on after %v", what, noticed, time.Since(began))
	}
	r0, port := c.all.serving[0], c.all.nats.Addr().(*net.TCPAddr).Port
	fail("NATS stopped", c.all.stopNATS, func() { c.all.startNATS(port) }, r0)
	fail("a replica cut from NATS", c.all.line.passing.Lock, c.all.line.passing.Unlock, r0)
	for name, r := range c.end() {
		if strings.HasSuffix(name, string(streamable)) && r.Silent > 0 {
			t.Errorf("%s: %d calls got no answer", name, r.Silent)
		}
	}
}

// post sends a request to the gateway itself.
func (g *gateway) post(session, method string) (status int, _ http.Header) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(within(g.t), http.MethodPost, g.url, strings.NewReader(requestJSON("1", method, "{}")))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Header
}

// P1 and P2 with replicas: each request has one answer, its own.
func TestReplicasUnderChaos(t *testing.T) {
	c := &chaosRun{ledger: newLedger(chaosBound), t: t, name: "replicas", seed: *chaosSeed, calmFile: filepath.Join(t.TempDir(), "calm")}
	c.setCalm(true)
	all := startReplicas(t, slices.Concat(chaosWaits, c.child())...)
	c.urls = []string{all.at[streamable]}
	over := make(chan struct{})
	var wg sync.WaitGroup
	for n := range 2 * chaosClients {
		wg.Go(func() {
			if last := c.live(rand.New(rand.NewPCG(c.seed, uint64(n))), over); last != nil {
				last.leave(true)
			}
		})
	}
	time.Sleep(*chaosFor) // the run is as long as its user says
	close(over)
	wg.Wait()
	counts, faults := c.report()
	for _, fault := range faults {
		t.Error(fault)
	}
	if t.Logf("%v; %v forwarded", counts, all.forwarded()); counts.results == 0 || all.forwarded() == 0 {
		t.Error("the run shows nothing")
	}
}
