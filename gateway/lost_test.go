package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/upstream/standin"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// proven is longer than the age at which a session has proved itself.
const proven = 11 * time.Second

func TestSessionLostBetweenCalls(t *testing.T) {
	u := &server{capabilities: `{"tools":{"listChanged":true},"prompts":{},"resources":{"listChanged":true}}`}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connectReady(t, g)
		p.post(initialize("0", "2025-06-18", `{"roots":{}}`), request("1", "tools/list"))
		p.want("0 *", answered("1", 2, "tools/list"))
		u.session(t, 2).die()
		p.want("notifications/tools/list_changed", "notifications/resources/list_changed")
		p.wantState(connstate.Ready)
		p.served("2", 3, "tools/list")
		first, second := u.session(t, 2).message(t, "initialize"), u.session(t, 3).message(t, "initialize")
		equal(t, "params of the new session", string(second.Params()), string(first.Params()))
		equal(t, "mcp_sse_session_restarts_total", metric(t, g, "mcp_sse_session_restarts_total"), 1)
	})
}

// A client that declares itself only after a loss, as its new session starts or before it has used it,
// gets a session with what it declares.
func TestDeclaredAfterALoss(t *testing.T) {
	for name, wait := range map[string]time.Duration{"while the session starts": time.Second, "before its use": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			u := booting(2 * time.Second)
			withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
				p.post(request("1", "tools/list"))
				time.Sleep(proven)
				p.want(answered("1", 1, "tools/list"))
				u.session(t, 1).die()
				time.Sleep(wait)
				p.post(initialize("0", "2025-06-18", `{"sampling":{}}`))
				time.Sleep(5 * time.Second)
				p.take()
				wantText(t, "params of the last session", string(u.session(t, 3).message(t, "initialize").Params()), "sampling")
				p.served("2", 3, "tools/list")
			})
		})
	}
}

func TestSessionIsRestored(t *testing.T) {
	u := &server{}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		call := func(id, method, params string) string {
			return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
		}
		p.post(
			call("1", "logging/setLevel", `{"level":"info"}`), call("2", "logging/setLevel", `{"level":"debug","x":1.0}`),
			call("3", "resources/subscribe", `{"uri":"a://1","_meta":{}}`), call("4", "resources/subscribe", `{"uri":"a://2"}`),
			call("5", "resources/unsubscribe", `{"uri":"a://2"}`),
		)
		synctest.Wait()
		time.Sleep(proven)
		p.deliver(request("6", "hang"))
		u.session(t, 1).die()
		synctest.Wait()
		s := u.session(t, 2)
		equal(t, "the new session got", slices.Sorted(slices.Values(s.methods())), []string{"initialize", "logging/setLevel", "notifications/initialized", "resources/subscribe"})
		for method, want := range map[string]string{"logging/setLevel": `{"level":"debug","x":1.0}`, "resources/subscribe": `{"uri":"a://1","_meta":{}}`} {
			equal(t, "restored by "+method, string(s.message(t, method).Params()), want)
		}
	})
}

// The gateway uses a new session even if it refuses the restored state.
func TestRestoreThatFails(t *testing.T) {
	u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool { return s.n == 2 && m.Method == "logging/setLevel" }}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		p.post(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`)
		p.want("1 *")
		u.session(t, 1).die()
		time.Sleep(time.Second)
		p.post(request("2", "tools/list"))
		time.Sleep(4 * time.Second)
		p.want(answered("2", 2, "tools/list"))
	})
}

// A session in the place of one with a server at which nobody is logged in ends with the login, however soon. That is no
// loss: the next session starts without a pause, and the server is healthy.
func TestLoginEndsTheSessionInItsPlace(t *testing.T) {
	u := &server{capabilities: `{"tools":{"listChanged":true}}`}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-06-18", emptyDeclared))
		p.want("0 *")
		u.session(t, u.starts()).finish(standin.ErrLoggedIn)
		p.want("notifications/tools/list_changed")
		p.served("1", u.starts(), "tools/list")
		time.Sleep(2 * time.Second) // viewers share a look
		_, page := ask(g.Admin(), "/status")
		equal(t, "the page calls the server healthy", strings.Contains(page, "healthy"), true)
		equal(t, "the page calls the server unstable", strings.Contains(page, "unstable"), false)
	})
}

// crashesOnceInitialized is the handler of a server that starts and then dies.
func crashesOnceInitialized(s *serverSession, m *jsonrpc.Message) bool {
	if m.Method == "notifications/initialized" {
		time.AfterFunc(time.Millisecond, s.die)
	}
	return false
}

// A session that ends before it proved itself counts as a failed start: after too
// many in a row the connection gives up, until the client sends a request.
func TestCrashLoopIsBounded(t *testing.T) {
	u := &server{handle: crashesOnceInitialized}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		time.Sleep(10 * time.Millisecond) // pauses of up to 1, 2, 4 and 8 s follow: the sum is not this short
		if n := u.starts(); n == 5 {
			t.Error("the starts follow each other without a pause")
		}
		p.wantState(connstate.Failed) // in the first pause already
		time.Sleep(10 * time.Minute)
		equal(t, "starts in 10 minutes", u.starts(), 5)
		p.wantState(connstate.Failed)
		equal(t, "the snapshot counts failures, want each of 5 starts and the giving up", p.c.Snapshot().Failures["request_creation"], 6)
		p.deliver(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		equal(t, "starts after a notification, want none more", u.starts(), 5)
		p.post(request("1", "hang"))
		time.Sleep(time.Second)
		p.want("1 session_lost retryable=false")
		p.wantState(connstate.Failed)
		equal(t, "starts after a request, want one more", u.starts(), 6)
	})
}

// The loss of a session that proved itself does not count the failed starts before
// it.
func TestAttemptsCountFromAProvenSession(t *testing.T) {
	u := &server{dial: func(_ context.Context, n int) error {
		if n == 3 {
			return nil
		}
		return errNoServer
	}}
	withClient(t, u, gateway.Settings{MaxHandshakeAttempts: 3}, func(t *testing.T, p *peer) {
		time.Sleep(time.Minute)
		p.wantState(connstate.Ready)
		u.session(t, 1).die()
		p.wantState(connstate.Failed)
		p.post(initialize("0", "2025-11-25", emptyDeclared))
		p.want()
		p.wantState(connstate.Failed) // the second start of three failed
		time.Sleep(time.Minute)
		p.want("0 initialization_error request_creation attempt 3")
	})
}

// A server that dismisses its client gets no other session: the requests are answered,
// and the connection ends.
func TestDismissedClientsConnectionEnds(t *testing.T) {
	u := &server{}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		time.Sleep(proven)
		p.deliver(request("1", "hang"), request("2", "tools/call"), request("3", "hang"))
		u.session(t, 1).finish(fmt.Errorf("over: %w", jsonrpc.ErrDismissed))
		p.want(answered("2", 1, "tools/call"), "1 session_lost retryable=false", "3 session_lost retryable=false")
		time.Sleep(time.Minute)
		p.wantState(connstate.Closed)
		equal(t, "closed because of", p.c.Reason(), connstate.ClosedServer)
		equal(t, "sessions were started", u.starts(), 1)
	})
}

// A message that finds a session just dismissed does not get the client another one,
// although the session's end is not known yet.
func TestDismissedWhileAMessageIsSent(t *testing.T) {
	var deaf atomic.Bool
	u := &server{deaf: func(*serverSession) bool { return deaf.Load() }, refusal: fmt.Errorf("over: %w", jsonrpc.ErrDismissed)}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		time.Sleep(proven)
		deaf.Store(true)
		p.deliver(request("1", "tools/call"))
		p.want("1 closed retryable=true")
		time.Sleep(time.Minute)
		p.wantState(connstate.Closed)
		equal(t, "closed because of", p.c.Reason(), connstate.ClosedServer)
		equal(t, "starts", u.starts(), 1)
	})
}

// A session that is lost during the release of the gate leaves the remaining messages
// in order, with the message that it did not take first.
func TestOrderHoldsWhenTheSessionIsLostDuringRelease(t *testing.T) {
	u := &server{dial: slow(time.Second), handle: inSession(1, on("deadly", dies))}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		p.post(request("1", "deadly"), request("2", "b"), request("3", "c"), request("4", "d"))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		got := slices.DeleteFunc(u.session(t, 2).methods(), func(m string) bool { return len(m) > 1 })
		if rest := slices.Compact(slices.Clone(got)); !slices.IsSorted(rest) || len(rest) == 0 {
			t.Errorf("the second session got %v, want them in order", got)
		}
		equal(t, "requests are unanswered", p.c.InFlight(), 0)
	})
}

// A session that is lost during the restore of the client's state does not open the
// gate: messages wait for the next session, within their timeouts.
func TestSessionLostWhileItsStateIsRestored(t *testing.T) {
	u := &server{handle: inSession(2, on("logging/setLevel", func(s *serverSession, _ *jsonrpc.Message) {
		time.AfterFunc(300*time.Millisecond, s.die)
	}))}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		p.post(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`)
		p.want("1 *")
		u.session(t, 1).die()
		synctest.Wait()
		p.post(request("2", "tools/list"))
		time.Sleep(5 * time.Second)
		p.want("2 *")
		p.wantState(connstate.Ready)
	})
}

// A notification named initialize has no effect; its missing params must not become
// those of the next session.
func TestNotificationNamedInitialize(t *testing.T) {
	u := &server{}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		p.deliver(`{"jsonrpc":"2.0","method":"initialize"}`)
		u.dial = slow(time.Second)
		u.session(t, 1).die()
		synctest.Wait()
		p.post(initialize("7", "2025-06-18", emptyDeclared))
		time.Sleep(4 * time.Second)
		p.want("7 *")
		u.session(t, 2).wantMethods(t, "initialize", "notifications/initialized")
	})
}

// Waiting requests and remembered params do not keep the large messages that held
// them.
func TestSubscriptionsAreBoundedInBytes(t *testing.T) {
	u := &server{}
	withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
		pad := strings.Repeat("x", 5<<10)
		p.post(`{"jsonrpc":"2.0","id":0,"method":"resources/subscribe","params":{"uri":"a://small"}}`)
		for i := range 20 {
			p.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"a://%d","pad":"%s"}}`, i+1, i, pad))
		}
		synctest.Wait()
		u.session(t, 1).die()
		time.Sleep(2 * time.Second)
		got := u.session(t, 2).methods()
		equal(t, "subscriptions were repeated, want the small one", len(slices.DeleteFunc(got, func(m string) bool { return m != "resources/subscribe" })), 1)
	})
}

// Without the synthetic initialize a session gets the client's own, once, also if the
// session before was lost during it.
func TestPlainSessionGetsOneInitialize(t *testing.T) {
	u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool { return s.n == 1 && m.Method == "initialize" }}
	withClient(t, u, gateway.Options{NoAutoInitialize: true}, func(t *testing.T, p *peer) {
		p.deliver(initialize("1", "2025-06-18", emptyDeclared))
		u.session(t, 1).die()
		time.Sleep(2 * time.Second)
		p.want("1 session_lost retryable=false")
		p.post(initialize("2", "2025-06-18", emptyDeclared))
		p.want("2 *")
		u.session(t, 2).wantMethods(t, "initialize")
	})
}

// chatter makes a session send notifications all the time.
func chatter(s *serverSession, size int, every time.Duration) {
	for !s.over() {
		s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"pad":"` + strings.Repeat("x", size) + `"}}`)
		time.Sleep(every)
	}
}

// A slow client slows down a server that sends too much, and the connection becomes
// ready all the same.
func TestFloodAtTheStartDoesNotKeepTheGateShut(t *testing.T) {
	u := &server{}
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "notifications/initialized" {
			go chatter(s, 10_000, 500*time.Microsecond)
			time.Sleep(10 * time.Millisecond)
		}
		return false
	}
	inFakeTime(t, u, gateway.Settings{OutboxBytes: 256 << 10}, func(t *testing.T, g *gateway.Gateway) {
		p := connectSlow(t, g, plain, time.Millisecond)
		p.post(request("1", "tools/list"))
		time.Sleep(time.Second)
		p.wantState(connstate.Ready)
		p.c.Close("client")
		time.Sleep(10 * time.Second)
	})
}

// A server that never stops sending does not delay a shutdown with no request in
// flight.
func TestShutdownDoesNotWaitForAChattyServer(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		connectSlow(t, g, plain, 2*time.Millisecond)
		synctest.Wait()
		go chatter(u.session(t, 1), 10, time.Millisecond)
		time.Sleep(time.Second)
		began := time.Now()
		equal(t, "error", <-shutdown(g, 15*time.Second), nil)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Shutdown took %s of its 15 s", took)
		}
		time.Sleep(10 * time.Second)
	})
}

// Answers that a server sent before its end reach the client, even if a later message
// is the first to show the end.
func TestAnswersOnTheirWayOutliveTheServer(t *testing.T) {
	u := &server{deaf: func(s *serverSession) bool { return s.count("last") > 0 }, dial: failingFrom(2, 1000)}
	inFakeTime(t, u, gateway.Settings{OutboxBytes: 1}, func(t *testing.T, g *gateway.Gateway) {
		p := connectSlow(t, g, plain, 300*time.Millisecond)
		synctest.Wait()
		p.post(request("1", "a"), request("2", "b"), request("3", "c"), request("4", "last"))
		u.session(t, 1).die()
		p.post(request("9", "too late"))
		time.Sleep(4 * time.Second)
		got := strings.Join(p.take(), "\n")
		for id, method := range map[string]string{"1": "a", "2": "b", "3": "c", "4": "last"} {
			wantText(t, "text", got, answered(id, 1, method))
		}
	})
}

// A server answers the request that is out and ends at once: it takes the request that
// waited for that answer no more, while the session's reader has the answer in hand.
func TestServerAnswersAndEnds(t *testing.T) {
	for name, test := range map[string]struct {
		opts   gateway.Options
		method string
		params string
	}{
		"max-in-flight":         {gateway.Options{MaxInFlight: 1}, "first", `{}`},
		"requests with one key": {gateway.Options{Sessions: gateway.SessionsShared}, "logging/setLevel", `{"level":"info"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var exited atomic.Bool
			u := &server{deaf: func(s *serverSession) bool { return s.n == 1 && exited.Load() }}
			u.handle = inSession(1, on(test.method, func(s *serverSession, m *jsonrpc.Message) {
				go func() {
					time.Sleep(time.Second)
					exited.Store(true) // Send fails from now on
					s.say(string(jsonrpc.NewResult(m.ID, []byte(`{}`))))
					time.Sleep(time.Millisecond)
					s.die()
				}()
			}))
			inFakeTime(t, u, test.opts, func(t *testing.T, g *gateway.Gateway) {
				a, b := connect(t, g, plain), connect(t, g, plain)
				time.Sleep(proven)
				for n, p := range []*peer{a, b, a, b} {
					p.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, n, test.method, test.params))
				}
				time.Sleep(15 * time.Minute)
				synctest.Wait()
				equal(t, "requests are unanswered after 15 min", a.c.InFlight()+b.c.InFlight(), 0)
			})
		})
	}
}

// A connection closes while its client's own initialize is on the way to the session.
func TestCloseBesideInitialize(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{NoAutoInitialize: true, ConnectRate: -1}, func(t *testing.T, g *gateway.Gateway) {
		for range 50 {
			p := connect(t, g, plain)
			p.post(request("1", "tools/list"))
			m, err := jsonrpc.Parse([]byte(initialize("0", "2025-06-18", `{}`)))
			must(t, err)
			var both sync.WaitGroup
			both.Go(func() { p.c.Receive(m) })
			both.Go(func() { p.c.Close(connstate.ClosedClient) })
			both.Wait()
		}
	})
}

// A message that waits after a loss learns after the initialization timeout that the server still starts, if its client has
// no lists from memory.
func TestMessageAfterALossWaitsForTheInitializationTimeout(t *testing.T) {
	u := &server{handle: lists(nil), dial: func(ctx context.Context, n int) error {
		if n > 1 {
			<-ctx.Done()
		}
		return ctx.Err()
	}}
	inFakeTime(t, u, gateway.Settings{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{}`), request("1", "tools/list"))
		time.Sleep(time.Second)
		p.take()
		u.session(t, 1).die()
		synctest.Wait()
		p.post(request("2", "tools/call"))
		time.Sleep(5*time.Second + time.Millisecond)
		p.want("2 initialization_error request_processing attempt 1")
	})
}
