package gateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// shutdown runs Shutdown in the background and returns a channel with its result.
func shutdown(g interface{ Shutdown(context.Context) error }, within time.Duration) <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		done <- g.Shutdown(ctx)
	}()
	return done
}

func TestShutdownFinishesWhatIsInFlight(t *testing.T) {
	u := &server{handle: on("slow", late(3*time.Second))}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		busy, idle := connect(t, g, plain), connect(t, g, plain)
		busy.wantState(connstate.Ready)
		busy.deliver(request("1", "slow"))
		done := shutdown(g, 15*time.Second)
		synctest.Wait()
		busy.wantState(connstate.Draining)
		busy.post(request("2", "tools/list"), request("3", "ping"), initialize("4", "2025-11-25", emptyDeclared))
		busy.want("2 draining retryable=true", "3 {}", "4 "+serverResult)
		time.Sleep(2500 * time.Millisecond) // the window in which idle streams are closed
		idle.wantState(connstate.Closed)
		busy.wantState(connstate.Draining)
		time.Sleep(3 * time.Second)
		busy.want("1 {*")
		busy.wantState(connstate.Closed)
		equal(t, "error", <-done, nil)
		equal(t, "reasons", busy.c.Reason()+idle.c.Reason(), "shutdownshutdown")
	})
}

func TestShutdownRefusesWhatWaits(t *testing.T) {
	inFakeTime(t, &server{dial: slow(time.Hour)}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.deliver(request("1", "tools/list"))
		done := shutdown(g, 15*time.Second)
		p.want("1 draining retryable=true")
		equal(t, "dropped messages", metric(t, g, "mcp_sse_messages_dropped_total"), 0)
		p.post(request("2", "tools/list"), initialize("3", "2025-11-25", emptyDeclared), `{"jsonrpc":"2.0","method":"notifications/x"}`)
		p.want("2 draining retryable=true", "3 draining retryable=true")
		equal(t, "dropped messages, want the notification", metric(t, g, "mcp_sse_messages_dropped_total"), 1)
		equal(t, "error", <-done, nil)
	})
}

// A client on stdin has no credentials that could end.
func TestStdioNeedsNoToken(t *testing.T) {
	refuse := func(*http.Request) (string, error) { return "", errors.New("no token") }
	inFakeTime(t, &server{}, gateway.Options{Authenticate: refuse, Reauthenticate: true}, func(t *testing.T, g *gateway.Gateway) {
		in, client := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- g.ServeStdio(t.Context(), in, io.Discard, time.Second) }()
		time.Sleep(time.Minute)
		equal(t, "clients are left", len(g.Snapshot()), 1)
		_ = client.Close()
		equal(t, "error", <-done, nil)
	})
}

// When time is up, the remaining requests get errors, the remaining streams close,
// and the error has their numbers.
func TestShutdownIsBounded(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.deliver(request("1", "hang"), request("2", "hang"))
		began := time.Now()
		err := <-shutdown(g, 5*time.Second)
		wantText(t, "error", err, "1 connections cut, 2 requests answered with an error")
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("Shutdown took %s, want little more than its 5 s", took)
		}
		p.wantState(connstate.Closed)
		equal(t, "sessions are left", u.open(), 0)
		equal(t, "error", <-shutdown(g, time.Second), nil)
	})
}

// Streams close one after the other, so that their clients do not all reconnect at
// once.
func TestShutdownSpreadsTheEnd(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		const clients = 50
		var (
			mu      sync.Mutex
			moments = map[time.Duration]bool{}
		)
		began := time.Now()
		for range clients {
			p := connect(t, g, plain)
			go func() { // ends with the connection
				<-p.c.Done()
				mu.Lock()
				defer mu.Unlock()
				moments[time.Since(began)] = true
			}()
		}
		synctest.Wait()
		first, second := shutdown(g, 15*time.Second), shutdown(g, 15*time.Second)
		equal(t, "error", errors.Join(<-first, <-second), nil)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Shutdown of idle connections took %s, want at most the 2 s window", took)
		}
		synctest.Wait()
		if len(moments) < clients/2 {
			t.Errorf("%d streams ended at %d moments, want them spread", clients, len(moments))
		}
	})
}

func TestReady(t *testing.T) {
	t.Run("a probe before any start", func(t *testing.T) {
		u := &server{}
		inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
			for range 3 {
				equal(t, "error", g.Ready(t.Context()), nil)
			}
			synctest.Wait()
			if u.starts() != 1 || u.open() != 0 {
				t.Errorf("%d starts, %d open; want one probe, and it closed", u.starts(), u.open())
			}
			u.session(t, 1).wantMethods(t, "initialize", "notifications/initialized")
		})
	})
	t.Run("after a failure it is looked at again", func(t *testing.T) {
		u := &server{dial: failing(2)}
		inFakeTime(t, u, gateway.Settings{MaxHandshakeAttempts: 1}, func(t *testing.T, g *gateway.Gateway) {
			connect(t, g, plain).wantState(connstate.Failed)
			var callers sync.WaitGroup
			for range 5 { // one probe, whose result stands for a while
				callers.Go(func() {
					ssetest.WantError(t, "Ready", g.Ready(t.Context()), errNoServer)
				})
			}
			callers.Wait()
			equal(t, "starts, want the client's and one probe", u.starts(), 2)
			time.Sleep(2 * time.Second)
			equal(t, "error", g.Ready(t.Context()), nil)
		})
	})
	t.Run("a probe is bounded", func(t *testing.T) {
		inFakeTime(t, &server{dial: slow(time.Hour)}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
			began := time.Now()
			wantText(t, "error", g.Ready(t.Context()), "still starting")
			equal(t, "the wait took, want the initialization timeout", time.Since(began), 5*time.Second)
			time.Sleep(56 * time.Second)
			ssetest.WantError(t, "Ready", g.Ready(t.Context()), context.DeadlineExceeded)
		})
	})
	t.Run("who gives up says nothing about the server", func(t *testing.T) {
		u := &server{dial: slow(2 * time.Second)}
		inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := g.Ready(ctx); err == nil {
				t.Error("ready before the probe could know")
			}
			equal(t, "error", g.Ready(t.Context()), nil)
		})
	})
}

// A running probe does not outlive the gateway.
func TestShutdownEndsProbes(t *testing.T) {
	u := &server{dial: slow(3 * time.Second)}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		probe := make(chan error, 1)
		go func() { probe <- g.Ready(context.Background()) }()
		synctest.Wait()
		began := time.Now()
		if err := <-shutdown(g, 15*time.Second); err != nil || time.Since(began) > 0 {
			t.Errorf("Shutdown: %v after %s, want none and no wait for the probe", err, time.Since(began))
		}
		synctest.Wait()
		select {
		case <-probe:
		default:
			t.Error("the probe goes on after Shutdown")
		}
		time.Sleep(time.Minute)
		equal(t, "sessions are left", u.open(), 0)
	})
}

// No session replaces one that is lost while its connection drains.
func TestSessionLostWhileDraining(t *testing.T) {
	u := &server{}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		p.deliver(request("1", "hang"))
		quiet, err := p.c.Drain()
		must(t, err)
		u.session(t, 1).die()
		p.want("1 session_lost retryable=false")
		<-quiet
		p.wantState(connstate.Draining)
		p.post(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		time.Sleep(time.Minute)
		equal(t, "starts", u.starts(), 1)
	})
}

// No start follows one that fails while its connection drains.
func TestStartFailsWhileDraining(t *testing.T) {
	u := &server{dial: slowFailure}
	withClient(t, u, gateway.Settings{MaxHandshakeAttempts: 1}, func(t *testing.T, p *peer) {
		synctest.Wait()
		_, err := p.c.Drain()
		must(t, err)
		time.Sleep(time.Minute)
		p.wantState(connstate.Draining)
		equal(t, "starts", u.starts(), 1)
	})
}

// A connection may be so new, when time is up, that it has no session yet.
func TestShutdownWaitsForNewConnections(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		c, err := g.Registry().Open(plain)
		must(t, err)
		done := shutdown(g, time.Second)
		time.Sleep(3 * time.Second)
		select {
		case err := <-done:
			t.Fatalf("Shutdown returned before the connection was removed: %v", err)
		default:
		}
		wholeOf(c).Bind(gateway.Accept(g, c))
		g.Registry().Remove(c)
		wantText(t, "error", <-done, "1 connections cut")
	})
}

// Shutdown also waits for sessions that ended by themselves: their child may still
// have to be killed.
func TestShutdownWaitsForLostSessions(t *testing.T) {
	for _, sharing := range []gateway.Sessions{gateway.SessionsPerConnection, gateway.SessionsShared} {
		t.Run(string(sharing), func(t *testing.T) {
			u := &server{closing: 3 * time.Second}
			inFakeTime(t, u, gateway.Options{Sessions: sharing}, func(t *testing.T, g *gateway.Gateway) {
				p := connectReady(t, g)
				u.session(t, 1).die()
				synctest.Wait()
				p.c.Close("left")
				equal(t, "error", g.Shutdown(t.Context()), nil)
				s := u.session(t, 1)
				s.mu.Lock()
				defer s.mu.Unlock()
				if !s.closed {
					t.Error("Shutdown returned before the lost session was closed")
				}
			})
		})
	}
}
