package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// parrots makes a server put all that it has heard from its client into its lists: "evil" if that was in it.
func parrots(s *serverSession, m *jsonrpc.Message) bool {
	heard := "good"
	for _, text := range s.texts() {
		if strings.Contains(text, "evil") {
			heard = "evil"
		}
	}
	return lists(map[string]string{"tools/list": `{"tools":["` + heard + `"],"nextCursor":""}`, "prompts/list": `{"prompts":["` + heard + `"]}`})(s, m)
}

// Answers that come after a message with anything in it that its client has chosen are told to nobody else.
func TestMessageOfAClientTeachesNobodyElse(t *testing.T) {
	const open = `{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"peer","version":"0"}`
	say := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	for name, c := range map[string]struct{ params, message string }{
		"a resource":              {open, say("resources/read", `{"uri":"evil:x"}`)},
		"a prompt":                {open, say("prompts/get", `{"name":"evil"}`)},
		"a completion":            {open, say("completion/complete", `{"ref":"evil"}`)},
		"a log level":             {open, say("logging/setLevel", `{"level":"evil"}`)},
		"a subscription":          {open, say("resources/subscribe", `{"uri":"evil:x"}`)},
		"a list with a filter":    {open, say("tools/list", `{"filter":"evil"}`)},
		"a list with _meta":       {open, say("tools/list", `{"_meta":{"tenant":"evil"}}`)},
		"a cursor of its own":     {open, say("prompts/list", `{"cursor":"evil"}`)},
		"a member":                {open, `{"jsonrpc":"2.0","id":1,"method":"tools/list","evil":1}`},
		"two params":              {open, say("tools/list", `{"_meta":{"progressToken":"evil","progressToken":1}}`)},
		"a notification":          {open, `{"jsonrpc":"2.0","method":"notifications/evil"}`},
		"_meta of initialize":     {open + `,"_meta":{"tenant":"evil"}`, say("ping", "{}")},
		"a member of initialize":  {open + `,"tenant":"evil"`, say("ping", "{}")},
		"an object as version":    {strings.Replace(strings.Replace(open, `"2025-11-25"`, `{"evil":"evil"}`, 1), "peer", "claude-code", 1), say("ping", "{}")},
		"a member of client info": {strings.Replace(open, `"version"`, `"tenant":"evil","version"`, 1), say("ping", "{}")},
	} {
		t.Run(name, func(t *testing.T) {
			u := &server{capabilities: withLists, handle: parrots}
			inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
				p := connect(t, g, plain)
				p.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+c.params+`}}`, initialized, c.message, request("2", "tools/list"))
				time.Sleep(time.Second)
				if got := p.take(); !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, "evil") }) {
					t.Fatalf("the server has not heard it: its client got %q", got)
				}
				p.c.Close(connstate.ClosedClient)
				time.Sleep(10 * time.Second)
				for _, capabilities := range []string{`{"roots":{}}`, `{}`} {
					next := connect(t, g, plain)
					next.post(initialize("0", "2025-11-25", capabilities), request("1", "tools/list"), request("2", "prompts/list"))
					time.Sleep(time.Second)
					if got := fmt.Sprint(next.take()); strings.Contains(got, "evil") || !strings.Contains(got, "good") {
						t.Errorf("the next client got %s", got)
					}
				}
			})
		})
	}
}

// Lists that a client reads to their end, with the cursors that it was given, and with progress, are remembered.
func TestClientThatReadsItsListsTeaches(t *testing.T) {
	u := &server{capabilities: withLists, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		page := `{"tools":[1],"nextCursor":"2"}`
		if m.Param("cursor").Value != nil {
			page = `{"tools":[2]}`
		}
		return lists(map[string]string{"tools/list": page})(s, m)
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`), `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":7}}}`)
		synctest.Wait()
		p.post(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"2"}}`)
		time.Sleep(time.Second)
		p.take()
		returns(t, g)
	})
}

// A client that has only initialized, and leaves, has brought up what the next one is told.
func TestClientThatOnlyInitializesTeaches(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
		p.want("0 *")
		p.c.Close(connstate.ClosedClient)
		time.Sleep(time.Second)
		equal(t, "sessions", u.open(), 0)
		returns(t, g)
		equal(t, "starts", u.starts(), 1)
	})
}

// A client of another kind, or in another place, has initialize and its tools from the nearest memory at once. Its
// server starts at once too; everything else waits for it, and what differs is told.
func TestNearestMemory(t *testing.T) {
	tools := `{"tools":["old"]}`
	u := &server{capabilities: withLists, dial: laterIn(8 * time.Second), handle: func(s *serverSession, m *jsonrpc.Message) bool {
		return lists(map[string]string{"tools/list": tools})(s, m)
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learnedFromSilence(t, g, u)
		tools = `{"tools":["new"]}`
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"sampling":{}}`), initialized)
		p.want("0 " + resultWith(withLists))
		p.post(request("1", "tools/list"), request("2", "prompts/list"))
		p.want(`1 {"tools":["old"]}`)
		equal(t, "starts", u.starts(), 2)
		time.Sleep(10 * time.Second)
		p.want("notifications/tools/list_changed", `2 {"of":"prompts/list"}`)
		p.post(request("3", "tools/list"))
		p.want(`3 {"tools":["new"]}`)
		wantText(t, "the initialize of the server", string(u.session(t, 2).message(t, "initialize").Params()), `"sampling"`)

		next := connect(t, g, plain) // the session has said what such clients get
		next.post(initialize("0", "2025-11-25", `{"sampling":{}}`), request("1", "tools/list"))
		next.want("0 *", `1 {"tools":["new"]}`)
		next.wantState(connstate.Resting)
	})
}

// A client that was told the tools of others is told to read its own, if the gateway could not.
func TestNearestMemoryOfAServerWhoseListsCannotBeRead(t *testing.T) {
	u := &server{capabilities: withLists, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if s.n == 2 && m.Method == "tools/list" && s.count("tools/list") == 1 {
			return true // it never answers the look
		}
		return lists(map[string]string{"tools/list": fmt.Sprintf(`{"tools":[%d]}`, s.n)})(s, m)
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learnedFromSilence(t, g, u)
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"sampling":{}}`), initialized)
		p.want("0 *")
		p.post(request("1", "tools/list"))
		time.Sleep(2 * time.Minute)
		p.want(`1 {"tools":[1]}`, "notifications/tools/list_changed")
		p.post(request("2", "tools/list"))
		p.want(`2 {"tools":[2]}`)
	})
}

// The nearest memory leaves out each of these, by itself.
func TestLimitsOfTheNearestMemory(t *testing.T) {
	type place struct {
		identity, place, anyFolder, capabilities string
	}
	type limit struct {
		first, second place            // what they serve; each is the server of the gateway in its turn
		client        connstate.Client // the second one; the first is ada, if this one has a principal
		version       string           // of the second client
		initializes   bool             // the first client: the server has heard its params, not the gateway's own
		own           bool             // the gateway has started the server by itself before
		empty         bool             // and in an empty folder
		want          bool
	}
	const other = `{"tools":{}}`
	for name, c := range map[string]limit{
		"another kind of client":                              {want: true},
		"another version":                                     {version: "2025-06-18"},
		"another server":                                      {second: place{identity: "other"}},
		"another place":                                       {second: place{place: "b"}},
		"another place, and an empty folder":                  {first: place{anyFolder: "c"}, second: place{place: "b", anyFolder: "c"}, empty: true, want: true},
		"another place, and nothing of an empty folder":       {first: place{anyFolder: "c"}, second: place{place: "b", anyFolder: "c"}},
		"another user":                                        {first: place{anyFolder: "c"}, second: place{place: "b", anyFolder: "d"}, empty: true},
		"a folder that chooses the server":                    {first: place{anyFolder: "c"}, second: place{place: "b"}, empty: true},
		"a server that tells of no changes":                   {first: place{capabilities: other}},
		"another client with params of its own":               {initializes: true},
		"the same principal with params of its own":           {client: connstate.Client{Principal: "ada"}, initializes: true},
		"another principal":                                   {client: connstate.Client{Principal: "eve"}},
		"the same principal":                                  {client: connstate.Client{Principal: "ada"}, want: true},
		"another principal, and the gateway itself has asked": {client: connstate.Client{Principal: "eve"}, own: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			capabilities := withLists
			if c.first.capabilities != "" {
				capabilities = c.first.capabilities
			}
			serve := func(in *place) *server {
				return &server{identity: in.identity, place: in.place, anyFolder: in.anyFolder, capabilities: capabilities, handle: lists(nil)}
			}
			u := serve(&c.first)
			opts := remembering()
			opts.Remember.Dir = ssetest.PrivateDir(t)
			inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
				first, second := plain, plain
				if second.Principal = c.client.Principal; second.Principal != "" {
					first.Principal = "ada"
				}
				if c.own {
					_, err := forprogram.Of(g).CheckStart(t.Context())
					must(t, err)
				}
				p := connect(t, g, first)
				if c.initializes {
					p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
				}
				p.post(request("1", "tools/list"))
				time.Sleep(time.Second)
				p.take()
				p.c.Close(connstate.ClosedClient)
				time.Sleep(10 * time.Second)
				if c.empty {
					forprogram.Of(g).LearnInAnyFolder(t.Context())
				}

				next := serve(&c.second)
				next.dial = slow(8 * time.Second)
				reconfigure(t, g, next, opts.Options)
				q := connect(t, g, second)
				version := c.version
				if version == "" {
					version = "2025-11-25"
				}
				q.post(initialize("0", version, `{"sampling":{}}`), request("1", "tools/list"))
				time.Sleep(time.Second)
				equal(t, "answers within a second", len(q.take()), map[bool]int{true: 2, false: 0}[c.want])
				time.Sleep(10 * time.Second)
				equal(t, "starts for it", next.starts(), 1)
				equal(t, "answers later", len(q.take()), map[bool]int{true: 0, false: 2}[c.want])
			})
		})
	}
}

// Clients of many kinds that leave before their server is ready leave one start for nobody, not one each.
func TestStartsForNobodyAreBounded(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil), dial: slow(10 * time.Second)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		for i := range 28 {
			p := connect(t, g, plain)
			p.post(initialize("0", "2025-11-25", fmt.Sprintf(`{"experimental":{"kind":%d}}`, i)))
			time.Sleep(1100 * time.Millisecond)
			p.c.Close(connstate.ClosedClient)
			synctest.Wait()
			if starts := u.open() + 1; starts > 4 {
				t.Fatalf("%d sessions after %d clients", starts, i+1)
			}
		}
		time.Sleep(time.Minute)
		equal(t, "sessions", u.open(), 0)
		if starts := u.starts(); starts > 28+4 {
			t.Errorf("%d starts for 28 clients", starts)
		}
	})
}

// A crowd that leaves before the server is ready leaves nothing that waits or takes a place: the next client has its server as
// soon as that can start.
func TestCrowdThatLeavesTakesNoPlace(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil), dial: slow(10 * time.Second)}
	opts := remembering()
	opts.MaxConnections = 30
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		for round := range 25 {
			var crowd []*peer
			for i := range 28 {
				p := connect(t, g, plain)
				p.post(initialize("0", "2025-11-25", fmt.Sprintf(`{"experimental":{"kind":%d}}`, 28*round+i)))
				crowd = append(crowd, p)
			}
			time.Sleep(time.Second)
			for _, p := range crowd {
				p.c.Close(connstate.ClosedClient)
			}
			synctest.Wait()
			if sessions := metric(t, g, "mcp_sse_sessions"); sessions > 4 {
				t.Fatalf("%v sessions after %d rounds", sessions, round+1)
			}
		}
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
		time.Sleep(10*time.Second + 100*time.Millisecond)
		p.want("0 " + resultWith(withLists))
		p.c.Close(connstate.ClosedClient)
		time.Sleep(time.Minute)
		equal(t, "sessions", u.open(), 0)
		equal(t, "places", metric(t, g, "mcp_sse_sessions"), 0)
	})
}

// A memory that cannot be renewed starts a process now and then, not for each client.
func TestRenewalThatFailsPauses(t *testing.T) {
	for name, u := range map[string]*server{
		"the server does not start": {dial: func(_ context.Context, n int) error {
			if n > 1 {
				return errors.New("no")
			}
			return nil
		}, handle: lists(nil)},
		"its lists cannot be read": {handle: func(s *serverSession, m *jsonrpc.Message) bool {
			if s.n > 1 && m.Method == "tools/list" {
				fails(-32000)(s, m)
				return true
			}
			return lists(nil)(s, m)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			u.capabilities = withLists
			inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
				learned(t, g, u)
				time.Sleep(25 * time.Hour)
				for range 60 {
					p := returns(t, g)
					p.c.Close(connstate.ClosedClient)
					time.Sleep(time.Minute)
				}
				if starts := u.starts() - 1; starts > 20 {
					t.Errorf("%d starts for 60 clients in an hour", starts)
				}
			})
		})
	}
}

// The start check asks, for nobody, what the server says to clients of each version: so the first client of any kind
// has its tools before its server has started.
func TestStartCheckFillsTheMemoryForEachKindOfClient(t *testing.T) {
	u := &server{capabilities: withLists, dial: laterIn(8 * time.Second), handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method != "initialize" {
			return lists(nil)(s, m)
		}
		version, _ := m.Param("protocolVersion").Text()
		s.say(string(jsonrpc.NewResult(m.ID, []byte(strings.Replace(resultWith(withLists), "2025-11-25", min(version, "2025-11-25"), 1)))))
		return true
	}}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		_, err := forprogram.Of(g).CheckStart(t.Context())
		must(t, err)
		time.Sleep(time.Second)
		equal(t, "sessions", u.open(), 0)
		equal(t, "starts", u.starts(), 1)
		for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
			p := connect(t, g, plain)
			p.post(initialize("0", version, `{"roots":{}}`))
			if got := p.take(); len(got) != 1 || !strings.Contains(got[0], min(version, "2025-11-25")) {
				t.Errorf("%s: got %q", version, got)
			}
			p.post(request("1", "tools/list"))
			p.want(`1 {"of":"tools/list"}`)
		}
	})
}

// Answers in an empty folder are learned once, after the answers to clients, and in a session that ends.
func TestAServerIsAskedInAnEmptyFolder(t *testing.T) {
	u := &server{place: "a", anyFolder: "any", capabilities: withLists, handle: lists(nil)}
	opts := remembering()
	opts.Remember.Dir = ssetest.PrivateDir(t)
	forprogram.OptionsOf(&opts.Options).LearnsAnyFolder = true
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/list"))
		time.Sleep(time.Second)
		equal(t, "starts at first", u.starts(), 1)
		time.Sleep(10 * time.Second)
		equal(t, "starts while a client has a session", u.starts(), 1)
		p.c.Close(connstate.ClosedClient)
		time.Sleep(time.Minute)
		equal(t, "starts later", u.starts(), 2)
		equal(t, "sessions", u.open(), 0)
		folder := u.lastFolder()
		wantText(t, "the folder", folder, opts.Remember.Dir)
		if _, err := os.Stat(folder); err == nil {
			t.Error("it is still there")
		}
		q := connect(t, g, plain)
		q.post(initialize("0", "2025-11-25", `{"sampling":{}}`), request("1", "prompts/list"))
		time.Sleep(time.Minute)
		equal(t, "starts for another kind of client", u.starts(), 3)
	})
}

// A gateway that may end at any time starts nothing in an empty folder by itself, and one whose server does not start there goes on.
func TestAServerThatDoesNotStartInAnEmptyFolder(t *testing.T) {
	for byItself, starts := range map[bool]int{true: 2, false: 1} {
		t.Run(fmt.Sprint(byItself), func(t *testing.T) {
			u := &server{place: "a", anyFolder: "any", capabilities: withLists, handle: lists(nil), dial: func(_ context.Context, n int) error {
				if n == 2 {
					return errors.New("there is nothing here")
				}
				return nil
			}}
			opts := remembering()
			opts.Remember.Dir = ssetest.PrivateDir(t)
			forprogram.OptionsOf(&opts.Options).LearnsAnyFolder = byItself
			inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
				p := connect(t, g, plain)
				p.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/list"))
				time.Sleep(time.Second)
				p.c.Close(connstate.ClosedClient)
				time.Sleep(time.Hour)
				equal(t, "starts", u.starts(), starts)
				equal(t, "sessions", u.open(), 0)
				forprogram.Of(g).LearnInAnyFolder(t.Context()) // it has just been tried
				if byItself {
					equal(t, "starts after another try", u.starts(), starts)
				}
				must(t, g.Ready(t.Context()))
			})
		})
	}
}

// A connection that ends in the moment in which its own initialize is awaited counts, too.
func TestAConnectionThatEndsBeforeItsStartCounts(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		p := connect(t, g, plain)
		time.Sleep(time.Millisecond)
		p.c.Close(connstate.ClosedClient)
		synctest.Wait()
		equal(t, "handshakes that were canceled", metric(t, g, `mcp_sse_handshakes_total{phase="",reason="",result="canceled"}`), 1)
		equal(t, "starts", u.starts(), 1)
	})
}

// A server does not start in an empty folder beside a session of another gateway of its command, whatever that remembers.
func TestNoEmptyFolderBesideASessionOfAnotherGateway(t *testing.T) {
	for name, change := range map[string]func(*gateway.Settings, *server){
		"it remembers":                    func(*gateway.Settings, *server) {},
		"it remembers nothing":            func(s *gateway.Settings, _ *server) { s.Remember = nil },
		"it has one request at a time":    func(s *gateway.Settings, _ *server) { s.MaxInFlight = 1 },
		"it sends no initialize":          func(s *gateway.Settings, _ *server) { s.NoAutoInitialize = true },
		"its server runs nowhere else":    func(_ *gateway.Settings, u *server) { u.anyFolder = "" },
		"its clients share a session":     func(s *gateway.Settings, _ *server) { s.Sessions = gateway.SessionsShared },
		"its server has another variable": func(_ *gateway.Settings, u *server) { u.identity = "another variable" },
	} {
		t.Run(name, func(t *testing.T) {
			of := func() *server {
				return &server{command: "c", place: "a", anyFolder: "any", capabilities: withLists, handle: lists(nil)}
			}
			u := of()
			opts := remembering()
			opts.Remember.Dir = ssetest.PrivateDir(t)
			locks := filepath.Join(opts.Remember.Dir, "locks")
			forprogram.OptionsOf(&opts.Options).LockDir = locks
			inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
				learned(t, g, u)
				other, up := settings(remembering()), of()
				other.Remember.Dir = opts.Remember.Dir
				forprogram.OptionsOf(&other.Options).LockDir = locks
				change(&other, up)
				beside, err := gateway.NewWith(up, other)
				must(t, err)
				defer func() { equal(t, "error", <-shutdown(beside, time.Minute), nil) }()
				p := connect(t, beside, plain)
				p.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/call"))
				time.Sleep(10 * time.Second)
				equal(t, "sessions of the other one", up.open(), 1)
				forprogram.Of(g).LearnInAnyFolder(t.Context())
				equal(t, "starts in an empty folder", u.starts()-1, 0)
				p.c.Close(connstate.ClosedClient)
				time.Sleep(time.Hour)
				if up.open() == 0 {
					forprogram.Of(g).LearnInAnyFolder(t.Context())
					equal(t, "starts once it has left", u.starts()-1, 1)
				}
			})
		})
	}
}

// A server that starts in an empty folder, but shows nothing there that can be remembered, is left alone as one that does not start.
func TestAServerThatShowsNothingInAnEmptyFolderIsLeftAlone(t *testing.T) {
	u := &server{place: "a", anyFolder: "any", capabilities: withLists, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "tools/list" && s.n > 1 {
			s.die() // there is no project here
			return true
		}
		return lists(nil)(s, m)
	}}
	opts := remembering()
	opts.Remember.Dir = ssetest.PrivateDir(t)
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		time.Sleep(10 * time.Second)
		for range 5 { // as after each client of sse-server stdio
			forprogram.Of(g).LearnInAnyFolder(t.Context())
		}
		equal(t, "starts in an empty folder", u.starts()-1, 1)
	})
}

// A server that says the same for ever is asked again in an empty folder once what is known of that is old.
func TestAServerIsAskedAgainInAnEmptyFolder(t *testing.T) {
	u := &server{place: "a", anyFolder: "any", capabilities: withLists, handle: lists(nil)}
	opts := remembering()
	opts.Remember.Dir, opts.Remember.For = ssetest.PrivateDir(t), 24*time.Hour
	forprogram.OptionsOf(&opts.Options).LearnsAnyFolder = true
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		time.Sleep(time.Minute)
		first := u.lastFolder()
		equal(t, "it was asked", first != "", true)
		for range 40 { // days
			p := connect(t, g, plain)
			p.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/list"), request("2", "tools/call"))
			time.Sleep(time.Second)
			p.c.Close(connstate.ClosedClient)
			time.Sleep(24*time.Hour - time.Second)
		}
		equal(t, "it was asked again within 40 days", u.lastFolder() != first, true)
	})
}

// A gateway asks a server in an empty folder that another one has learned, which ended before it could: after its first session.
func TestAServerThatIsKnownFromBeforeIsAskedInAnEmptyFolder(t *testing.T) {
	of := func() *server {
		return &server{place: "a", anyFolder: "any", capabilities: withLists, handle: lists(nil)}
	}
	u, next := of(), of()
	opts := remembering()
	opts.Remember.Dir = ssetest.PrivateDir(t)
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		with := settings(remembering())
		with.Remember.Dir = opts.Remember.Dir
		forprogram.OptionsOf(&with.Options).LearnsAnyFolder = true
		later, err := gateway.NewWith(next, with)
		must(t, err)
		defer func() { equal(t, "error", <-shutdown(later, time.Minute), nil) }()
		p := connect(t, later, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/list"))
		time.Sleep(time.Hour)
		equal(t, "starts for a client that is answered from memory", next.starts(), 0)
		p.post(request("2", "tools/call"))
		time.Sleep(time.Second)
		p.c.Close(connstate.ClosedClient)
		time.Sleep(time.Minute)
		equal(t, "starts for a call, and in an empty folder", next.starts(), 2)
		equal(t, "it was asked", next.lastFolder() != "", true)
	})
}

// Without locks nobody knows whether the server is used.
func TestAwaitUnusedWithoutLocks(t *testing.T) {
	g, err := gateway.New(&server{}, gateway.Options{})
	must(t, err)
	if err := forprogram.Of(g).AwaitUnused(t.Context(), time.Millisecond); err == nil {
		t.Error("no error")
	}
}
