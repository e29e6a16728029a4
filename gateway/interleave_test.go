package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A session that is lost during the release of the gate leaves the remaining messages
// in order, with the message that it did not take first.
func TestOrderHoldsWhenTheSessionIsLostDuringRelease(t *testing.T) {
	u := &server{dial: slow(time.Second)}
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		if s.n == 1 && m.Method == "deadly" {
			s.die()
			return true
		}
		return false
	}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(request("1", "deadly"), request("2", "b"), request("3", "c"), request("4", "d"))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		got := slices.DeleteFunc(u.session(t, 2).methods(), func(m string) bool { return len(m) > 1 })
		if rest := slices.Compact(slices.Clone(got)); !slices.IsSorted(rest) || len(rest) == 0 {
			t.Errorf("the second session got %v, want them in order", got)
		}
		if n := p.c.InFlight(); n != 0 {
			t.Errorf("%d requests are unanswered", n)
		}
	})
}

// A session that is lost during the restore of the client's state does not open the
// gate: messages wait for the next session, within their timeouts.
func TestSessionLostWhileItsStateIsRestored(t *testing.T) {
	u := &server{}
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		if s.n == 2 && m.Method == "logging/setLevel" {
			time.AfterFunc(300*time.Millisecond, s.die)
			return true
		}
		return false
	}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
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
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(`{"jsonrpc":"2.0","method":"initialize"}`)
		synctest.Wait()
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
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		pad := strings.Repeat("x", 5<<10)
		p.post(`{"jsonrpc":"2.0","id":0,"method":"resources/subscribe","params":{"uri":"a://small"}}`)
		for i := range 20 {
			p.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"a://%d","pad":"%s"}}`, i+1, i, pad))
		}
		synctest.Wait()
		u.session(t, 1).die()
		time.Sleep(2 * time.Second)
		got := u.session(t, 2).methods()
		if n := len(slices.DeleteFunc(got, func(m string) bool { return m != "resources/subscribe" })); n != 1 {
			t.Errorf("%d subscriptions were repeated, want the small one", n)
		}
	})
}

// Without the synthetic initialize a session gets the client's own, once, also if the
// session before was lost during it.
func TestPlainSessionGetsOneInitialize(t *testing.T) {
	u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool { return s.n == 1 && m.Method == "initialize" }}
	inFakeTime(t, u, gateway.Options{NoAutoInitialize: true}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("1", "2025-06-18", emptyDeclared))
		synctest.Wait()
		u.session(t, 1).die()
		time.Sleep(2 * time.Second)
		p.want("1 session_lost retryable=false")
		p.post(initialize("2", "2025-06-18", emptyDeclared))
		p.want("2 *")
		u.session(t, 2).wantMethods(t, "initialize")
	})
}

// A slow client gets the answers that were ready in time.
func TestShutdownWaitsForAnswersOnTheirWay(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		c, err := g.Registry().Open(plain)
		if err != nil {
			t.Fatal(err)
		}
		p := &peer{t: t, c: c}
		c.Bind(g.Accept(c))
		written := 0
		c.Attach(func(e connstate.Event) bool {
			time.AfterFunc(5*time.Second, func() {
				written++
				c.Written(e.Size())
			})
			return true
		})
		go func() {
			<-c.Done()
			g.Registry().Remove(c)
		}()
		p.post(request("1", "tools/list"))
		synctest.Wait()
		if err := <-shutdown(g, 15*time.Second); err != nil || written != 1 {
			t.Errorf("Shutdown = %v with %d answers written, want nil and 1", err, written)
		}
	})
}
