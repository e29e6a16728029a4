//go:build all

package e2e

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

var crowd = flag.Int("crowd", 10, "TypeScript clients of each SDK and transport, in the tests of replicas")

// startCrowdsOfReplicas starts replicas, and clients of their balancer.
func startCrowdsOfReplicas(t *testing.T) (*replicas, *crowds) {
	t.Helper()
	all := startReplicas(t, fake(t)...)
	return all, startCrowds(t, all.url, *crowd)
}

// replace makes another gateway, or none, serve in the place of one.
func (all *replicas) replace(old, new *gateway) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.serving = slices.DeleteFunc(all.serving, func(g *gateway) bool { return g == old })
	if new != nil {
		all.serving = append(all.serving, new)
	}
}

// When the replicas are replaced one after the other, no client over /mcp notices, and those
// over /sse go on.
func TestRollingRestart(t *testing.T) {
	replicas, c := startCrowdsOfReplicas(t)
	done, calls := make(chan struct{}), sync.WaitGroup{}
	for _, version := range []string{"2025-11-25", ""} { // with a session, and without
		client := openGoSDK(version)(t, replicas.url, streamable, "")
		ssetest.Must(t, client.connect(within(t)))
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
		old := replicas.serving[0]
		next := replicas.launch(fmt.Sprintf("next%d", i), "12s")
		replicas.await(next)
		replicas.replace(old, next)
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
	replicas, c := startCrowdsOfReplicas(t)
	c.goOn()
	for range 2 {
		victim := replicas.serving[0]
		victim.kill()
		replicas.replace(victim, nil)
		c.goOn()
	}
	c.end()
}

// While NATS is away, each replica serves its own sessions, and refuses others at once; so it
// is for a replica that NATS does not hear. Then all go on.
func TestNATSFails(t *testing.T) {
	replicas, c := startCrowdsOfReplicas(t)
	c.goOn()
	own := map[*gateway]string{}
	for _, g := range replicas.serving {
		res, _ := post(t, g.url, "tools/list", "", "")
		own[g] = res.Header.Get("Mcp-Session-Id")
	}
	fail := func(what string, break_, mend func(), alone *gateway) {
		began, deadline := time.Now(), within(t)
		break_()
		for again := ""; again == ""; time.Sleep(50 * time.Millisecond) { // what was on its way waits longer
			res, _ := post(t, alone.url, "tools/list", "Mcp-Session-Id", own[replicas.serving[1]])
			if again = res.Header.Get("Retry-After"); deadline.Err() != nil {
				t.Fatalf("%s: a foreign request got %s", what, res.Status)
			}
		}
		noticed := time.Since(began)
		if res, _ := post(t, alone.url, "tools/list", "Mcp-Session-Id", own[alone]); res.StatusCode != http.StatusOK {
			t.Errorf("%s: a request of its own got %s", what, res.Status)
		}
		mend()
		c.goOn()
		t.Logf("%s: noticed after %v, all go on after %v", what, noticed, time.Since(began))
	}
	r0, port := replicas.serving[0], replicas.nats.Addr().(*net.TCPAddr).Port
	fail("NATS stopped", replicas.stopNATS, func() { replicas.startNATS(port) }, r0)
	fail("a replica cut from NATS", replicas.line.passing.Lock, replicas.line.passing.Unlock, r0)
	c.end()
}

// post sends a request to a URL, with a header unless it is empty, and returns the response
// and its body.
func post(t *testing.T, url, method, header, value string) (*http.Response, string) {
	t.Helper()
	req := ssetest.Request(within(t), http.MethodPost, url, requestJSON("1", method, "{}"))
	if value != "" {
		req.Header.Set(header, value)
	}
	res, err := http.DefaultClient.Do(req)
	ssetest.Must(t, err)
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res, string(body)
}

// P1 and P2 with replicas: each request has one answer, its own.
func TestReplicasUnderChaos(t *testing.T) {
	c := &chaosRun{ledger: newLedger(chaosBound), t: t, name: "replicas", seed: *chaosSeed, calmFile: filepath.Join(t.TempDir(), "calm")}
	c.setCalm(true)
	all := startReplicas(t, slices.Concat(chaosWaits, c.child())...)
	c.urls, c.tools = []string{all.url}, []string{"echo"}
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
