package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

func TestWarmSessionsAreReadyAtOnce(t *testing.T) {
	u := &server{dial: slow(3 * time.Second)}
	inFakeTime(t, u, gateway.Options{Warm: 2}, func(t *testing.T, g *gateway.Gateway) {
		g.Start()
		g.Start() // again does nothing
		time.Sleep(4 * time.Second)
		if n := metric(t, g, "mcp_sse_pool_idle"); n != 2 || u.starts() != 2 {
			t.Fatalf("%g idle sessions after %d starts, want 2 after 2", n, u.starts())
		}
		began := time.Now()
		for range 2 {
			p := connect(t, g, plain)
			p.post(request("1", "tools/list"))
			p.want(`1 {"session":*`)
		}
		equal(t, "requests of the two warm sessions", u.session(t, 1).count("tools/list")+u.session(t, 2).count("tools/list"), 2)
		if took := time.Since(began); took > 0 {
			t.Errorf("two connections were ready after %s, want at once", took)
		}
		cold := connect(t, g, plain) // before the pool is filled again
		cold.wantState(connstate.Initializing)
		time.Sleep(3 * time.Second)
		cold.wantState(connstate.Ready)
		if hit, idle := metric(t, g, "mcp_sse_pool_takes_total"), metric(t, g, "mcp_sse_pool_idle"); hit != 3 || idle != 2 {
			t.Errorf("%g takes and %g idle sessions, want 3 and 2", hit, idle)
		}
	})
}

// By default one server is kept warm where each connection gets a child of its own, and the
// child needs nothing of its client.
func TestOneServerIsWarmByDefault(t *testing.T) {
	child := upstream.Command{Path: "x"}
	for name, test := range map[string]struct {
		up   upstream.Upstream
		opts gateway.Options
		want int
	}{
		"command":           {child, gateway.Options{}, 1},
		"pointer to it":     {&child, gateway.Options{}, 1},
		"plain transport":   {child, gateway.Options{NoAutoInitialize: true}, 1},
		"more":              {child, gateway.Options{Warm: 3}, 3},
		"off":               {child, gateway.Options{Warm: -1}, 0},
		"shared":            {child, gateway.Options{Sessions: gateway.SessionsShared}, 0},
		"one client":        {child, gateway.Options{Transports: []gateway.Transport{gateway.TransportStdio}}, 0},
		"principals":        {upstream.Command{Path: "x", PrincipalEnv: "P"}, gateway.Options{}, 0},
		"requests":          {child, gateway.Options{PassRequest: &gateway.PassRequest{}}, 0},
		"remote":            {upstream.URL{Address: "https://example.com/mcp"}, gateway.Options{}, 0},
		"in this process":   {&server{}, gateway.Options{}, 0},
		"the same, ordered": {&server{}, gateway.Options{Warm: 2}, 2},
	} {
		equal(t, name, gateway.WarmOf(test.up, test.opts), test.want)
	}
}

// By default a warm server runs only while nothing is remembered of the server, and for ProcessIdle after its
// last use. A process that was started because nothing was known waits that long for its client.
func TestWarmServerFollowsUse(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	opts := remembering()
	opts.Warm, opts.WarmFollowsUse = 1, true
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		warm := func(want float64) {
			t.Helper()
			synctest.Wait()
			equal(t, "warm servers", metric(t, g, "mcp_sse_pool_idle"), want)
		}
		g.Start()
		time.Sleep(time.Hour) // it is not known, so it stands by for as long
		warm(1)
		first := connect(t, g, plain)
		first.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/list"))
		first.want("0 *", `1 {"of":"tools/list"}`)
		first.c.Close(connstate.ClosedClient)
		warm(1)
		time.Sleep(11 * time.Minute)
		warm(0)
		equal(t, "processes of a known server", u.open(), 0)

		p := returns(t, g)
		warm(0) // a client that only looks is no use
		p.served("1", 3, "tools/call")
		warm(1)
		time.Sleep(9 * time.Minute)
		p.served("2", 3, "tools/call")
		time.Sleep(9 * time.Minute)
		warm(1)
		time.Sleep(2 * time.Minute)
		warm(0)
		time.Sleep(3 * time.Minute)
		equal(t, "processes", u.open(), 0)
	})
}

// afterACheck runs a test of a gateway whose warm server follows use, and that has just checked its server and started.
func afterACheck(t *testing.T, run func(t *testing.T, g *gateway.Gateway, u *server, opts gateway.Settings)) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	opts := remembering()
	opts.Warm, opts.WarmFollowsUse = 1, true
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		_, err := forprogram.Of(g).CheckStart(t.Context())
		equal(t, "error of the check", err, nil)
		g.Start()
		run(t, g, u, opts)
	})
}

// A reload with process-idle off leaves the warm server, and nothing that looks for its last use again and again.
func TestWarmServerStaysWithoutProcessIdle(t *testing.T) {
	afterACheck(t, func(t *testing.T, g *gateway.Gateway, u *server, opts gateway.Settings) {
		time.Sleep(time.Minute)
		never := *opts.Remember
		never.ProcessIdle = -1
		opts.Remember = &never
		reconfigure(t, g, u, opts.Options)
		time.Sleep(time.Hour)
		equal(t, "warm servers", metric(t, g, "mcp_sse_pool_idle"), 1)
	})
}

// The warm server that starts after the check of a new server, as that of a package runner, waits for its client.
func TestWarmServerAfterACheckWaitsForItsClient(t *testing.T) {
	afterACheck(t, func(t *testing.T, g *gateway.Gateway, _ *server, _ gateway.Settings) {
		time.Sleep(9 * time.Minute)
		equal(t, "warm servers", metric(t, g, "mcp_sse_pool_idle"), 1)
		time.Sleep(2 * time.Minute)
		equal(t, "warm servers after process-idle", metric(t, g, "mcp_sse_pool_idle"), 0)
	})
}

// A server that is known needs no process to be ready, until a start of it fails.
func TestKnownServerIsReadyWithoutAProcess(t *testing.T) {
	broken := false
	u := &server{capabilities: withLists, handle: lists(nil), dial: func(context.Context, int) error {
		if broken {
			return errors.New("no such program")
		}
		return nil
	}}
	opts := remembering()
	opts.Warm, opts.WarmFollowsUse, opts.Remember.Dir = 1, true, t.TempDir()
	inFakeTime(t, &server{capabilities: withLists, handle: lists(nil)}, opts, func(t *testing.T, g *gateway.Gateway) {
		_, err := forprogram.Of(g).CheckStart(t.Context())
		equal(t, "error of the check", err, nil)
	})
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		time.Sleep(time.Hour) // what was said before was said before
		found, ok := forprogram.Of(g).Remembered()
		equal(t, "what the check has found is remembered", ok, true)
		equal(t, "version", found.Version, "1.0")
		g.Start()
		time.Sleep(time.Hour)
		equal(t, "readiness", g.Ready(t.Context()), nil)
		equal(t, "starts", u.starts(), 0)

		broken = true
		connect(t, g, plain).post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/call"))
		time.Sleep(time.Minute)
		if g.Ready(t.Context()) == nil {
			t.Error("a server that does not start is ready")
		}
	})
}

// A server that boots for 3 s has its tools at once for each client that comes while a warm
// one is there, also for the next: one that is taken is replaced.
func TestToolsOfASlowServerAreThereAtOnce(t *testing.T) {
	u := &server{}
	var boots sync.Map // when each session has booted
	u.born = func(s *serverSession) { boots.Store(s, time.Now().Add(3*time.Second)) }
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		booted, _ := boots.Load(s)
		rest := time.Until(booted.(time.Time))
		if rest > 0 && m.Kind == jsonrpc.Request {
			late(rest)(s, m)
		}
		return rest > 0
	}
	opts := gateway.Settings{Options: gateway.Options{Warm: 1}, Boots: true, AnnounceDelay: 100 * time.Millisecond}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		g.Start()
		for n := range 3 {
			time.Sleep(5 * time.Second)
			p := connect(t, g, plain)
			p.deliver(request("1", "tools/list"))
			time.Sleep(500 * time.Millisecond)
			p.want(fmt.Sprintf(`1 {"session":%d*`, n+1))
		}
	})
}

func TestNothingIsStartedBeforeTheFirstConnection(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{Warm: 1}, func(t *testing.T, g *gateway.Gateway) {
		time.Sleep(time.Minute)
		equal(t, "starts without Start or a connection", u.starts(), 0)
		connect(t, g, plain).wantState(connstate.Ready)
		equal(t, "starts with the first connection, want its own and one ahead", u.starts(), 2)
	})
}

// No client gets a session that another has initialized, whether with its own or the
// synthetic initialize, and whether it sent messages or not.
func TestInitializedSessionsAreNotPassedOn(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{Warm: 1}, func(t *testing.T, g *gateway.Gateway) {
		g.Start()
		synctest.Wait()
		for n := 1; n <= 5; n++ {
			p := connect(t, g, plain)
			if n%2 == 0 {
				p.post(initialize("0", "2025-06-18", `{"roots":{}}`))
			}
			p.wantState(connstate.Ready)
			p.c.Close("left")
			synctest.Wait()
			time.Sleep(time.Minute)
		}
		for n := 1; n <= u.starts(); n++ {
			if got := u.session(t, n).count("initialize"); got > 1 {
				t.Errorf("session %d was initialized %d times", n, got)
			}
		}
		equal(t, "sessions are open, want the one in the pool", u.open(), 1)
	})
}

// Clients that leave while their servers boot do not make the pool grow.
func TestPoolTakesNoMoreThanItNeeds(t *testing.T) {
	u := &server{handle: func(_ *serverSession, m *jsonrpc.Message) bool { return m.Method == "ping" }} // boots for ever
	opts := gateway.Settings{Options: gateway.Options{Warm: 1, ConnectRate: -1}, AnnounceDelay: 100 * time.Millisecond}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		for range 50 {
			p := connect(t, g, plain)
			time.Sleep(10 * time.Millisecond)
			p.c.Close("left")
		}
		synctest.Wait()
		if n := u.open(); n > 2 {
			t.Errorf("%d servers run for no client, want the pool's", n)
		}
	})
}

// A warm server is sent nothing until a client takes it. One that hangs is found by the
// handshake of that client, whose next start follows.
func TestWarmServerThatHangs(t *testing.T) {
	u := &server{handle: func(s *serverSession, _ *jsonrpc.Message) bool { return s.n == 1 }}
	opts := gateway.Options{Warm: 1, StartTimeout: 3 * time.Second}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		g.Start()
		time.Sleep(time.Hour)
		u.session(t, 1).wantMethods(t)
		p := connect(t, g, plain)
		p.post(request("1", "tools/list"))
		time.Sleep(3*time.Second + 1)
		u.session(t, 1).wantMethods(t, "initialize")
		if !u.session(t, 1).over() {
			t.Error("the session that does not answer is not over")
		}
		time.Sleep(time.Second)
		p.want(answered("1", 2, "tools/list"))
	})
}

func TestDeadWarmSessionsAreReplaced(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{Warm: 1}, func(t *testing.T, g *gateway.Gateway) {
		g.Start()
		synctest.Wait()
		for n := 1; n <= 3; n++ {
			time.Sleep(time.Hour) // proven
			u.session(t, n).die()
			time.Sleep(time.Second)
			if starts := u.starts(); starts != n+1 {
				t.Fatalf("%d starts after %d deaths, want %d", starts, n, n+1)
			}
		}
		p := connect(t, g, plain)
		p.served("1", 4, "tools/list")
	})
}

// A server that ends by itself when it has been idle for a while is not started over and over.
func TestWarmServersThatEndByThemselvesBackOff(t *testing.T) {
	u := &server{born: func(s *serverSession) { time.AfterFunc(11*time.Second, s.die) }}
	inFakeTime(t, u, gateway.Options{Warm: 1}, func(t *testing.T, g *gateway.Gateway) {
		g.Start()
		time.Sleep(10 * time.Minute)
		if n := u.starts(); n > 40 {
			t.Errorf("%d starts in 10 minutes, want pauses of some 15 s between them", n)
		}
	})
}

// A server that fails in its check is not started ahead of clients for a while, nor soon again after that: what it
// writes would hide the reason.
func TestServerThatFailsItsCheckIsLeftAlone(t *testing.T) {
	u := &server{dial: func(ctx context.Context, n int) error {
		select {
		case <-time.After(time.Second):
			return errors.New("no such program")
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	inFakeTime(t, u, gateway.Options{Warm: 1}, func(t *testing.T, g *gateway.Gateway) {
		checked := make(chan error)
		go func() { // ends with the check
			_, err := forprogram.Of(g).CheckStart(t.Context())
			checked <- err
		}()
		time.Sleep(500 * time.Millisecond)
		g.Start()
		if err := <-checked; err == nil {
			t.Error("a server that fails passes")
		}
		time.Sleep(9 * time.Second)
		if n := u.starts(); n != 2 {
			t.Errorf("%d starts after 10 s, want those of the check and of the one beside it", n)
		}
		time.Sleep(30 * time.Second)
		if n := u.starts(); n < 3 || n > 6 {
			t.Errorf("%d starts after 40 s, want about one in 15 s", n)
		}
	})
}

// A client that waits for a place takes the warm server that has got it.
func TestClientThatWaitsForAPlaceTakesTheWarmServer(t *testing.T) {
	u := &server{closing: 4 * time.Second}
	inFakeTime(t, u, gateway.Settings{Options: gateway.Options{Warm: 1, MaxConnections: 4}, MaxSessions: 1}, func(t *testing.T, g *gateway.Gateway) {
		first := connect(t, g, plain)
		first.wantState(connstate.Ready)
		first.c.Close("left")
		second := connect(t, g, plain)
		time.Sleep(5 * time.Second)
		second.wantState(connstate.Ready)
	})
}

// The pool does not start a server that fails or dies at once in a loop.
func TestFailedWarmStartsBackOff(t *testing.T) {
	for name, u := range map[string]*server{
		"no start":     {dial: func(context.Context, int) error { return errors.New("no such program") }},
		"dies at once": {born: (*serverSession).die},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, u, gateway.Options{Warm: 4}, func(t *testing.T, g *gateway.Gateway) {
				g.Start()
				time.Sleep(10 * time.Minute)
				// 4 at a time, 7.5 s apart on the average once the backoff is full.
				if n := u.starts(); n < 40 || n > 1000 {
					t.Errorf("%d starts in 10 minutes, want between 40 and 1000", n)
				}
				if err := g.Ready(t.Context()); err == nil {
					t.Error("the gateway is ready without a server")
				}
			})
		})
	}
}

// The wait for a turn is not part of a start: only the time of the server counts.
func TestStartsAreLimited(t *testing.T) {
	var most atomic.Int64
	running := make(chan struct{}, 100)
	u := &server{dial: func(ctx context.Context, n int) error {
		running <- struct{}{}
		most.Store(max(most.Load(), int64(len(running))))
		err := slow(time.Second)(ctx, n)
		<-running
		return err
	}}
	inFakeTime(t, u, gateway.Options{Warm: 2, StartTimeout: 2 * time.Second}, func(t *testing.T, g *gateway.Gateway) {
		var peers []*peer
		for range 40 {
			peers = append(peers, connect(t, g, plain))
		}
		synctest.Wait()
		equal(t, "starts wait", metric(t, g, "mcp_sse_starts_waiting"), 26)
		time.Sleep(3*time.Second + time.Millisecond)
		if n := most.Load(); n > 16 || u.starts() != 42 {
			t.Errorf("%d starts, %d at a time, want 42 and 16", u.starts(), n)
		}
		for _, p := range peers {
			p.wantState(connstate.Ready)
		}
		equal(t, "starts wait", metric(t, g, "mcp_sse_starts_waiting"), 0)
	})
}

// A client that leaves while its start waits for a turn costs no start.
func TestStartThatNobodyWaitsForIsNotMade(t *testing.T) {
	u := &server{dial: slow(time.Second)}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		for range 16 {
			connect(t, g, plain)
		}
		synctest.Wait()
		connect(t, g, plain).c.Close("left")
		time.Sleep(5 * time.Second)
		equal(t, "starts", u.starts(), 16)
	})
}

// A pool that fills does not block connections: each waits for at most two rounds of
// starts.
func TestFillingThePoolDoesNotHoldUpConnections(t *testing.T) {
	u := &server{dial: slow(time.Second)}
	inFakeTime(t, u, gateway.Options{Warm: 60}, func(t *testing.T, g *gateway.Gateway) {
		g.Start()
		synctest.Wait()
		p := connect(t, g, plain)
		time.Sleep(3*time.Second + time.Millisecond)
		p.wantState(connstate.Ready)
		time.Sleep(20 * time.Second)
		equal(t, "warm sessions", metric(t, g, "mcp_sse_pool_idle"), 60)
	})
}

// A shared session that takes no messages lives on for answers on their way, but not
// beyond the end of the gateway.
func TestShutdownBesideASharedSessionThatTakesNoMore(t *testing.T) {
	u := &server{deaf: func(s *serverSession) bool { return s.n == 1 && s.count("deafen") > 0 }}
	u.handle = func(_ *serverSession, m *jsonrpc.Message) bool { return m.Method == "deafen" }
	inFakeTime(t, u, sharing, func(t *testing.T, g *gateway.Gateway) {
		p := connectReady(t, g)
		p.post(request("1", "deafen"))
		time.Sleep(proven)
		p.served("2", 2, "tools/call")
		p.c.Close("left")
		synctest.Wait()
		if u.session(t, 1).over() {
			t.Fatal("the first session is over, an answer to another client may still come")
		}
		equal(t, "error", <-shutdown(g, 10*time.Second), nil)
		if n := u.open(); n > 0 {
			t.Errorf("%d sessions are open after Shutdown", n)
		}
	})
}

// Clients that come and leave while their servers take long to end.
func TestSessionsCountUntilTheyHaveEnded(t *testing.T) {
	for name, tt := range map[string]struct {
		opts gateway.Settings
		most int
	}{
		"as many as connections":          {gateway.Settings{Options: gateway.Options{MaxConnections: 4}}, 4},
		"as many as connections and warm": {gateway.Settings{Options: gateway.Options{MaxConnections: 4, Warm: 2}}, 6},
		"no limit":                        {gateway.Settings{Options: gateway.Options{MaxConnections: 4}, MaxSessions: -1}, 40},
	} {
		t.Run(name, func(t *testing.T) {
			tt.opts.InitializeTimeout = 30 * time.Second
			u := &server{closing: 20 * time.Second}
			inFakeTime(t, u, tt.opts, func(t *testing.T, g *gateway.Gateway) {
				for range 40 {
					p := connect(t, g, plain)
					time.Sleep(100 * time.Millisecond)
					p.c.Close("test")
					synctest.Wait()
					if n := u.alive(); n > tt.most {
						t.Fatalf("%d sessions have not ended, want at most %d", n, tt.most)
					}
				}
				equal(t, "mcp_sse_sessions", int(metric(t, g, "mcp_sse_sessions")), tt.most)
				equal(t, "sessions that have not ended", u.alive(), tt.most)
				p := connect(t, g, plain)
				p.post(initialize("1", "2025-11-25", emptyDeclared))
				time.Sleep(25 * time.Second) // by now the others have ended
				p.want("1 " + serverResult)
				equal(t, "mcp_sse_sessions", int(metric(t, g, "mcp_sse_sessions")), u.alive())
			})
		})
	}
}

// A client with many connections does not keep another waiting until all have theirs.
func TestStartsAreFair(t *testing.T) {
	u := &server{dial: slow(5 * time.Second)}
	from := func(addr string) connstate.Client {
		client := plain
		client.Addr = netip.MustParseAddr(addr)
		return client
	}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		for range 64 {
			connect(t, g, from("192.0.2.1"))
			synctest.Wait()
		}
		other := connect(t, g, from("192.0.2.2"))
		other.post(initialize("1", "2025-11-25", emptyDeclared))
		time.Sleep(10*time.Second + time.Millisecond) // the starts that run, and its own
		other.want("1 " + serverResult)
	})
}
