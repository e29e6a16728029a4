package connstate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// play is a connection whose client, server and starts do what a seed says. It
// notes how each request left the gate, and how often it was answered.
type play struct {
	*world
	sessions sync.WaitGroup // answers that are under way

	mu    sync.Mutex // guards what follows
	dice  *rand.Rand
	exits map[jsonrpc.ID][]string
	wins  map[jsonrpc.ID]int
	order map[string][]int // arrivals at the server, by client
}

func newPlay(t *testing.T, seed uint64) *play {
	p := &play{
		world: newWorld(t, connstate.Options{GateQueue: 20, GateTimeout: 5 * time.Millisecond}, connstate.Client{}),
		dice:  rand.New(rand.NewPCG(seed, 1)), exits: make(map[jsonrpc.ID][]string),
		wins: make(map[jsonrpc.ID]int), order: make(map[string][]int),
	}
	t.Logf("seed %d", seed)
	p.c.Bind(p) // in place of the handler of the world
	return p
}

func (p *play) roll(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dice.IntN(n)
}

func (p *play) pause() { time.Sleep(time.Duration(p.roll(2000)) * time.Microsecond) }

// left notes that a request left the gate, and how.
func (p *play) left(r *connstate.Request, how string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exits[r.ID] = append(p.exits[r.ID], how)
}

// finish answers a request, as far as nobody has.
func (p *play) finish(r *connstate.Request) {
	if finish(r, "") {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wins[r.ID]++
	}
}

// forward is the server: it answers at once, or later, or twice.
func (p *play) forward(how string) func(*connstate.Request) bool {
	return func(r *connstate.Request) bool {
		p.left(r, how)
		p.mu.Lock()
		var n int
		fmt.Sscan(string(r.ID), &n)
		p.order[r.Method] = append(p.order[r.Method], n)
		p.mu.Unlock()
		switch p.roll(4) {
		case 0:
			p.finish(r)
		case 1:
			p.sessions.Go(func() { p.pause(); p.finish(r) })
			fallthrough
		default:
			p.sessions.Go(func() { p.pause(); p.finish(r) })
		}
		if how == "released" && p.roll(6) == 0 {
			_ = p.c.Move(connstate.Initializing) // the session is lost meanwhile
		}
		return true
	}
}

func (p *play) Receive(*jsonrpc.Message) {}
func (p *play) Closed()                  {}
func (p *play) Refused(r *connstate.Request, _ error) {
	p.left(r, "refused")
	p.finish(r)
}

// client sends requests one after the other and takes some of them back.
func (p *play) client(n, requests int) {
	for i := range requests {
		r, err := p.c.Begin(request(p.t, fmt.Sprint(n*1000+i), fmt.Sprint("client", n)))
		if err != nil {
			if !errors.Is(err, connstate.ErrClosed) {
				p.t.Errorf("Begin: %v", err)
			}
			return
		}
		switch pass, err := p.c.Admit(r); {
		case err != nil:
			p.left(r, "not admitted")
			p.finish(r)
		case pass:
			p.forward("passed")(r)
		}
		p.pause()
		if p.roll(5) == 0 && p.c.Withdraw(r) {
			p.left(r, "withdrawn")
			p.finish(r)
		}
	}
}

// starts brings the connection through its states until stop.
func (p *play) starts(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		p.pause()
		switch p.roll(4) {
		case 0:
			_ = p.c.Move(connstate.Initializing)
		case 1:
			var refusal error
			if p.roll(2) == 0 {
				refusal = errors.New("no start is due")
			}
			waited, _ := p.c.Fail(refusal)
			for _, r := range waited {
				p.left(r, "failed")
				p.finish(r)
			}
		default:
			if release, err := p.c.Open(); err == nil {
				release(p.forward("released"))
			}
		}
	}
}

// check compares what happened with what may: each request left the gate once
// and was answered once, unless the connection was closed before; and no
// request of a client came to the server before one that it sent earlier.
func (p *play) check(clients, requests int, closed bool) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, how := range p.exits {
		if len(how) != 1 {
			p.t.Errorf("request %s left the gate %d times: %q", id, len(how), how)
		}
	}
	for id, n := range p.wins {
		if n != 1 {
			p.t.Errorf("request %s was answered %d times", id, n)
		}
	}
	if all := clients * requests; !closed && (len(p.exits) != all || len(p.wins) != all) {
		p.t.Errorf("of %d requests %d left the gate and %d were answered", all, len(p.exits), len(p.wins))
	}
	for client, ids := range p.order {
		if !slices.IsSorted(ids) {
			p.t.Errorf("%s: arrived in the order %v", client, ids)
		}
	}
}

func TestRandomLives(t *testing.T) {
	const clients, requests = 4, 40
	for seed := range uint64(60) {
		closes := seed%3 == 0
		synctest.Test(t, func(t *testing.T) {
			p := newPlay(t, seed)
			stop := make(chan struct{})
			var actors, starter sync.WaitGroup
			starter.Go(func() { p.starts(stop) })
			for n := range clients {
				actors.Go(func() { p.client(n, requests) })
			}
			if closes {
				time.Sleep(time.Duration(p.roll(40)) * time.Millisecond)
				p.c.Close(connstate.ClosedClient)
			}
			actors.Wait()
			close(stop)
			starter.Wait()
			if quiet, err := p.c.Drain(); err == nil {
				<-quiet
			} else if !closes {
				t.Errorf("Drain: %v", err)
			}
			p.sessions.Wait()
			synctest.Wait() // the timer of the gate may have finished a request and not counted it yet
			p.check(clients, requests, closes)
			p.c.Close(connstate.ClosedShutdown)
			p.registry.Remove(p.c)
			checkNothingMoves(t, p.world)
		})
	}
}

// checkNothingMoves expects every gauge at zero, and no series for a value that
// the metrics do not know.
func checkNothingMoves(t *testing.T, w *world) {
	t.Helper()
	all := gather(t, w.prom)
	for _, gauge := range []string{"mcp_sse_connections", "mcp_sse_gate_depth", "mcp_sse_requests_in_flight"} {
		if v, ok := all[gauge]; !ok || v != 0 {
			t.Errorf("%s: got %v, want 0", gauge, v)
		}
	}
	for _, s := range allStates()[:4] {
		name := `mcp_sse_connection_state{state="` + s.String() + `"}`
		if v, ok := all[name]; !ok || v != 0 {
			t.Errorf("%s: got %v, want 0", name, v)
		}
	}
	for name, v := range all {
		if v != 0 && isOther(name) {
			t.Errorf("%s: got %v: a value that the metrics do not know", name, v)
		}
	}
}

// Senders of all kinds, a stream that writes when it likes: what was sent
// without an error arrives once, in the order of its sender.
func TestRandomOutbox(t *testing.T) {
	const senders, each = 6, 80
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, connstate.Options{OutboxBytes: 500, OutboxWait: time.Hour}, connstate.Client{Dialect: connstate.EventMessage})
			w.attach(3)
			var all sync.WaitGroup
			for n := range senders {
				dice := rand.New(rand.NewPCG(seed, uint64(n)))
				all.Go(func() {
					for i := range each {
						data := fmt.Appendf(nil, "%c%03d%*s", 'a'+n, i, dice.IntN(300), "")
						if dice.IntN(3) == 0 {
							w.c.RespondNow("", data)
						} else {
							must(t, w.c.Send("", data))
						}
						if dice.IntN(4) == 0 {
							time.Sleep(time.Duration(dice.IntN(5)) * time.Millisecond)
						}
					}
				})
			}
			writer := make(chan struct{})
			go func() {
				defer close(writer)
				for w.c.State() != connstate.Closed {
					time.Sleep(time.Millisecond)
					w.stream.writeAll()
				}
			}()
			all.Wait()
			w.c.CloseGracefully(connstate.ClosedShutdown, time.Hour)
			<-writer
			bySender := make(map[byte][]string)
			for _, e := range w.stream.got() {
				data := e[len("message:"):]
				bySender[data[0]] = append(bySender[data[0]], data[1:4])
			}
			for n := range byte(senders) {
				got := bySender['a'+n]
				if len(got) != each || !slices.IsSorted(got) {
					t.Errorf("seed %d, sender %c: got %v", seed, 'a'+n, got)
				}
			}
			if got := w.c.Snapshot().MessagesOut; got != senders*each {
				t.Errorf("seed %d: counted %d messages out, want %d", seed, got, senders*each)
			}
		})
	}
}
