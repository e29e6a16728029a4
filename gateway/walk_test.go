package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// walk is a random walk through the lives of sessions, with an oracle. The same seed takes the same steps.
type walk struct {
	t    *testing.T
	g    *gateway.Gateway
	opts gateway.Options
	seed uint64
	rng  *rand.Rand

	servers [2]*walkServer // which the configuration has in turn
	now     int            // the index of the one that it has
	clients []*walkClient
	steps   []string // that were taken
}

// walkServer is a server whose list of tools has a version, and which answers a call with the words of its client.
type walkServer struct {
	*server
	name string

	mu      sync.Mutex // guards what follows
	version int
	fails   bool // its starts fail
	hangs   bool // it answers no call
}

func (s *walkServer) Identity() remember.Identity { return remember.Identity{Server: s.name} }

func (s *walkServer) is(what *bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *what
}

func newWalkServer(name string) *walkServer {
	s := &walkServer{name: name}
	s.server = &server{
		capabilities: withLists,
		dial: func(context.Context, int) error {
			if s.is(&s.fails) {
				return errNoServer
			}
			return nil
		},
		handle: func(of *serverSession, m *jsonrpc.Message) bool {
			switch {
			case m.Method == "tools/list":
				s.mu.Lock()
				defer s.mu.Unlock()
				of.say(string(jsonrpc.NewResult(m.ID, fmt.Appendf(nil, `{"tools":[],"version":"%s %d"}`, name, s.version))))
			case m.Method == "tools/call" && s.is(&s.hangs):
			case m.Method == "tools/call":
				words, _ := rawjson.Member(m.Params(), "words")
				of.say(string(jsonrpc.NewResult(m.ID, fmt.Appendf(nil, `{"words":%s}`, words))))
			default:
				return false
			}
			return true
		},
	}
	return s
}

// change changes the list, and tells all sessions.
func (s *walkServer) change() {
	s.mu.Lock()
	s.version++
	s.mu.Unlock()
	s.server.mu.Lock()
	all := s.sessions
	s.server.mu.Unlock()
	for _, of := range all {
		if !of.over() {
			of.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
	}
}

// die ends some session.
func (s *walkServer) die(rng *rand.Rand, why error) {
	s.server.mu.Lock()
	all := s.sessions
	s.server.mu.Unlock()
	if len(all) > 0 {
		all[rng.IntN(len(all))].finish(why)
	}
}

// walkClient is a client that lists again after each list_changed.
type walkClient struct {
	*peer
	name      string
	asked     map[string]string // by id: the method
	cancelled map[string]bool
	answered  map[string]bool
	read      int            // how many events the oracle has seen
	since     int            // requests up to this one were asked before the last list_changed
	has       string         // the version of its list; empty: it has none that counts
	newest    map[string]int // by server: the newest version that it was told
	subscribed,
	drained bool
}

func (w *walk) fault(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("seed %d: %s; the last steps:\n%s", w.seed, fmt.Sprintf(format, args...), strings.Join(w.steps[max(0, len(w.steps)-40):], "\n"))
}

// did notes a step, for who looks for a fault.
func (w *walk) did(format string, args ...any) {
	w.steps = append(w.steps, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

func (c *walkClient) ask(method, params string) {
	id := fmt.Sprint(len(c.asked) + 1)
	c.asked[id] = method
	c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}`, id, method, params))
}

// look has the oracle read what has come to the client.
func (w *walk) look(c *walkClient) {
	for _, e := range c.received()[c.read:] {
		c.read++
		w.did("    %s got %.90s", c.name, e.Data)
		m, err := jsonrpc.Parse(e.Data)
		switch {
		case err != nil:
			w.fault("%s got %s", c.name, e.Data)
		case m.Kind == jsonrpc.Notification && m.Method == "notifications/tools/list_changed":
			c.has, c.since = "", len(c.asked)
		case m.Kind == jsonrpc.Response && strings.HasPrefix(string(m.ID), `"auto-`):
		case m.Kind == jsonrpc.Response:
			w.answer(c, m)
		}
	}
}

func (w *walk) answer(c *walkClient, m *jsonrpc.Message) {
	id := string(m.ID)
	method, asked := c.asked[id]
	switch {
	case !asked || c.answered[id]:
		w.fault("%s got an answer too many: %s", c.name, m.Raw())
	case method == "initialize": // it begins anew, also after a failure: what it has asked for before does not count
		n, _ := strconv.Atoi(id)
		c.has, c.since = "", max(c.since, n)
		clear(c.newest) // it may be another kind of client now
	case m.Result() == nil:
	case method == "tools/call":
		if words, _ := rawjson.MemberText(m.Result(), "words"); words != c.name+" "+id {
			w.fault("crossed: %s got %q for its call %s", c.name, words, id)
		}
	case method == "tools/list":
		if n, _ := strconv.Atoi(id); n <= c.since {
			break // the client lists again
		}
		version, _ := rawjson.MemberText(m.Result(), "version")
		before := c.has
		c.has = version
		if w.opts.Sessions == gateway.SessionsShared || w.opts.NoAutoInitialize {
			break // rough-edges.md: who joins a shared session later; and a gateway that sends no initialize says nothing
		}
		if before != "" && before != version {
			w.fault("%s had %s, was told of no change, and got %s", c.name, before, version)
		}
		var of string
		var number int
		_, _ = fmt.Sscan(version, &of, &number) // it has this form
		if number < c.newest[of] {
			w.fault("%s was told version %d of %s, and later %d", c.name, c.newest[of], of, number)
		}
		c.newest[of] = number
	}
	c.answered[id] = true
}

// step takes one random step.
func (w *walk) step() {
	if len(w.clients) == 0 || len(w.clients) < 5 && w.rng.IntN(12) == 0 {
		c := &walkClient{peer: connect(w.t, w.g, plain), name: fmt.Sprint("client ", w.rng.IntN(1<<30)), asked: map[string]string{}, cancelled: map[string]bool{}, answered: map[string]bool{},
			newest: map[string]int{}}
		w.clients = append(w.clients, c)
		return
	}
	i := w.rng.IntN(len(w.clients))
	c, s := w.clients[i], w.servers[w.now]
	defer func() { w.look(c) }()
	what := w.rng.IntN(32)
	w.did("step %d of %s, %s, %d sessions", what, c.name, c.c.State(), s.open())
	switch what {
	case 0:
		c.leave()
		w.clients = append(w.clients[:i], w.clients[i+1:]...)
	case 1, 2:
		c.ask("initialize", fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"%s","version":"1"}}`,
			[]string{`{}`, `{"roots":{}}`, `{"sampling":{}}`}[w.rng.IntN(3)],
			[]string{"walker", "runner", "claude-code", "codex-mcp-client"}[w.rng.IntN(4)]))
	case 3, 4, 5, 6, 7:
		c.ask("tools/call", fmt.Sprintf(`{"words":"%s %d"}`, c.name, len(c.asked)+1))
	case 8, 9, 10, 11, 12:
		c.ask("tools/list", "{}")
	case 13:
		if n := len(c.asked); n > 0 {
			id := fmt.Sprint(w.rng.IntN(n) + 1) // ask numbers them from 1
			c.cancelled[id] = true
			c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		}
	case 14:
		c.subscribed = !c.subscribed
		c.ask(map[bool]string{true: "resources/subscribe", false: "resources/unsubscribe"}[c.subscribed], `{"uri":"a://1"}`)
	case 15, 16:
		s.die(w.rng, errNoServer)
	case 17:
		s.change()
	case 18:
		w.now = 1 - w.now
		w.reconfigure()
	case 19:
		if w.opts.NoAutoInitialize {
			return
		}
		w.opts.Remember = map[bool]*gateway.Remember{true: nil, false: {}}[w.opts.Remember != nil]
		w.reconfigure()
	case 20:
		s.mu.Lock()
		s.fails = !s.fails
		s.mu.Unlock()
	case 21:
		s.mu.Lock()
		s.hangs = !s.hangs
		s.mu.Unlock()
	case 22:
		if w.rng.IntN(4) == 0 {
			_, _ = c.c.Drain()
			c.drained = true
		}
	case 23:
		if w.rng.IntN(8) == 0 {
			s.die(w.rng, jsonrpc.ErrDismissed)
		}
	case 24:
		c.post(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	default:
		time.Sleep([]time.Duration{0, time.Millisecond, 50 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 7 * time.Minute, 16 * time.Minute}[w.rng.IntN(8)])
	}
	if w.rng.IntN(3) == 0 {
		synctest.Wait()
	}
}

// reconfigure has the gateway take the configuration. Lists that clients have of another server count no more.
func (w *walk) reconfigure() {
	must(w.t, w.g.Reconfigure(w.servers[w.now], w.opts))
	synctest.Wait()
	for _, c := range w.clients {
		w.look(c)
		clear(c.newest)
	}
}

// rest has everything come to rest, with servers that are well, and looks what is there then.
func (w *walk) rest() {
	for _, s := range w.servers {
		s.mu.Lock()
		s.fails, s.hangs = false, false
		s.mu.Unlock()
	}
	time.Sleep(20 * time.Minute)
	for range 2 { // what has given up may need to be asked twice
		for _, c := range w.clients {
			c.ask("tools/list", "{}")
		}
		time.Sleep(20 * time.Minute)
	}
	stay := 0
	for _, c := range w.clients {
		w.look(c)
		for id, method := range c.asked {
			if !c.answered[id] && !c.cancelled[id] && c.c.State() != connstate.Closed {
				w.fault("%s has no answer to %s (%s), in the state %s", c.name, id, method, c.c.State())
			}
		}
		if c.c.State() == connstate.Ready || c.c.State() == connstate.Draining {
			stay++ // with a subscription, or a list that has changed
		}
	}
	if w.opts.Remember == nil || w.opts.Sessions == gateway.SessionsShared || w.opts.NoAutoInitialize {
		return
	}
	if n := w.servers[0].open() + w.servers[1].open(); n > stay+1 { // one may be warm
		w.fault("%d sessions are open, want at most those of %d clients", n, stay)
	}
}

// faults fails a test at a line of the log that says that the table of the life has no move.
type faults struct {
	slog.Handler
	t *testing.T
}

func (f faults) Enabled(context.Context, slog.Level) bool { return true }

func (f faults) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "the table of the life") {
		r.Attrs(func(a slog.Attr) bool { f.t.Errorf("%s: %v", r.Message, a); return true })
	}
	return nil
}

func (f faults) WithAttrs([]slog.Attr) slog.Handler { return f }

func (f faults) WithGroup(string) slog.Handler { return f }

// Whatever happens, in whatever order: each request of a client that is there has one answer with its own words, no
// list changes without a word to who has it, nothing is left running for who needs nothing, and the life of a
// session never meets what its table calls impossible.
func TestWalkThroughTheLivesOfSessions(t *testing.T) {
	for name, opts := range map[string]gateway.Options{
		"remembering":           {Remember: &gateway.Remember{}},
		"nothing is remembered": {},
		"shared":                {Sessions: gateway.SessionsShared, Remember: &gateway.Remember{}},
		"warm":                  {Warm: 1, Remember: &gateway.Remember{}},
		"clients initialize":    {NoAutoInitialize: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			walkThrough(t, opts)
		})
	}
}

// walkThrough takes a walk for each seed. Each is a test of its own, so that a failure of any kind has its seed.
func walkThrough(t *testing.T, opts gateway.Options) {
	for seed := range uint64(walkSeeds()) {
		passed := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { walkFrom(t, seed, opts) })
		})
		if !passed {
			return
		}
	}
}

// walkFrom takes the walk of a seed.
func walkFrom(t *testing.T, seed uint64, opts gateway.Options) {
	const steps = 250
	w := &walk{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 2)),
		servers: [2]*walkServer{newWalkServer("one"), newWalkServer("two")}}
	with := gateway.Settings{Options: opts, AnnounceDelay: 100 * time.Millisecond}
	with.Logger = slog.New(faults{slog.DiscardHandler, t})
	w.opts = with.Options
	g, err := gateway.NewWith(w.servers[0], with)
	must(t, err)
	w.g = g
	defer func() {
		for _, c := range g.Registry().All() {
			c.Close("test over")
		}
		equal(t, "error", <-shutdown(g, time.Minute), nil)
		equal(t, "sessions that are left", w.servers[0].open()+w.servers[1].open(), 0)
	}()
	for range steps {
		w.step()
	}
	w.rest()
}

// walkSeeds is how many walks of each kind there are: 12, or WALKS.
func walkSeeds() int {
	if n, err := strconv.Atoi(os.Getenv("WALKS")); err == nil {
		return n
	}
	return 12
}
