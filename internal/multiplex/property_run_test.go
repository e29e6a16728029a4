package multiplex_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
)

const (
	chaosRuns  = 500
	chaosSteps = 150
)

// TestAnyInterleaving has clients, server and time do anything in any order, and
// checks that each request is answered once unless its client has left (P1), that
// a secret reaches nobody but its owner (P2), that bytes pass unchanged (P3), and
// that nothing is left in any table (P6). A run that fails names its seed.
func TestAnyInterleaving(t *testing.T) {
	for seed := range uint64(chaosRuns) {
		ok := t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { interleave(t, seed) })
		})
		if !ok {
			return
		}
	}
}

func interleave(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	x := &run{t: t, r: r, secrets: make(map[string]*told)}
	x.server = &chaosServer{run: x, in: make(chan incoming, 4096), done: make(chan struct{}), offers: make(map[string]*asked)}
	x.opts = multiplex.Options{
		Shared: r.IntN(5) > 0, MaxInFlight: []int{0, 0, 1, 3}[r.IntN(4)], MaxWaiting: []int{0, 4}[r.IntN(2)],
		RequestTimeout: 10 * time.Second, MaxRequestTimeout: 30 * time.Second,
	}
	x.single, x.unnamed = r.IntN(2) > 0, r.IntN(5) == 0
	x.session = multiplex.New(x.server, x.opts)
	x.join()
	for x.opts.Shared && len(x.actors) < 4 {
		x.join()
	}
	x.initialize()
	crash := chaosSteps // never
	if r.IntN(3) == 0 {
		crash = r.IntN(chaosSteps)
	}
	for n := range chaosSteps {
		if x.step(); n == crash {
			_ = x.server.Close()
		}
	}
	x.finish()
}

// initialize has the gateway make the first request of the session.
func (x *run) initialize() {
	go func() { _, _ = x.session.Call(x.t.Context(), "initialize", nil) }() // ends with its answer
	synctest.Wait()
	x.mu.Lock()
	k := x.server.all[0]
	x.say(result([]string{k.wire, x.nameOf(k)}[x.r.IntN(2)]), "")
	x.server.all, x.server.open = nil, nil // it speaks of that no more
	x.mu.Unlock()
	synctest.Wait()
}

// finish lets all that is open come to its end, and checks what is left.
func (x *run) finish() {
	time.Sleep(time.Minute) // beyond every deadline
	synctest.Wait()
	x.mu.Lock()
	for _, c := range x.actors {
		for _, a := range c.open {
			x.errorf("%s: %s was never answered", c.name, a.secret)
		}
	}
	for _, k := range x.secrets {
		if k.answered > 1 {
			x.errorf("%s was answered %d times", k.secret, k.answered)
		}
	}
	x.mu.Unlock()
	for len(x.actors) > 0 {
		x.leave(0)
	}
	synctest.Wait()
	x.empty("at once when all have left", "tasks.byID", "entries", "out", "counted", "queue", "queue.bytes", "busy")
	time.Sleep(time.Minute) // what was asked for those who have left
	synctest.Wait()
	x.empty("after all have left", "tasks.byID")
	x.session.Close(errTestOver)
	<-x.session.Done()
	synctest.Wait()
	x.empty("after the end")
}

// empty checks that nothing is in the tables, but where it may be.
func (x *run) empty(when string, but ...string) {
	tables := x.session.Tables()
	for _, name := range but {
		delete(tables, name)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, n := range tables {
		if n != 0 {
			x.errorf("%s: %d %s", when, n, name)
		}
	}
}
