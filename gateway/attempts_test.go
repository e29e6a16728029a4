package gateway_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
)

// After the last attempt nobody waits any more, until the client itself asks.
func TestAttemptsAreBounded(t *testing.T) {
	u := &server{dial: failing(4)}
	inFakeTime(t, u, gateway.Options{MaxHandshakeAttempts: 3}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		time.Sleep(14 * time.Second) // the pauses are at most 1 s and 2 s
		if u.starts() != 3 {
			t.Fatalf("%d starts, want 3", u.starts())
		}
		p.wantState(connstate.Failed)
		p.post(request("1", "tools/list"), request("2", "tools/list"), `{"jsonrpc":"2.0","method":"notifications/x"}`)
		p.want("1 initialization_error request_creation attempt 3", "2 initialization_error request_creation attempt 3")
		p.post(initialize("0", "2025-06-18", emptyDeclared))
		p.want("0 initialization_error request_creation attempt 3") // at once, and it failed again
		p.post(request("3", "tools/list"))
		p.want("3 initialization_error request_creation attempt 3")
		p.post(initialize("0", "2025-11-25", emptyDeclared), request("4", "tools/list"))
		p.want("0 "+serverResult, answered("4", 5, "tools/list"))
		p.wantState(connstate.Ready)
	})
}

// A client cannot know that the server is there again: some time after the last
// attempt its request has one made.
func TestRequestRevivesAConnectionThatGaveUp(t *testing.T) {
	u := &server{dial: failing(2)}
	inFakeTime(t, u, gateway.Options{MaxHandshakeAttempts: 1}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage, Quiet: true})
		synctest.Wait()
		p.wantState(connstate.Failed)
		time.Sleep(15*time.Second - 1)
		p.post(request("1", "tools/list"))
		p.want("1 initialization_error request_creation attempt 1")
		if u.starts() != 1 {
			t.Errorf("%d starts, want 1: the last one was a moment ago", u.starts())
		}
		time.Sleep(time.Nanosecond)
		p.post(request("2", "tools/list"))
		p.want("2 initialization_error request_creation attempt 1")
		time.Sleep(15 * time.Second)
		p.post(request("3", "tools/list"))
		p.want(answered("3", 3, "tools/list"))
		p.wantState(connstate.Ready)
	})
}

func TestInitializeEndsThePauseBetweenStarts(t *testing.T) {
	u := &server{dial: failing(3)}
	inFakeTime(t, u, gateway.Options{MaxHandshakeAttempts: 100}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		for range 2 {
			p.wantState(connstate.Failed)
			began := time.Now()
			p.post(initialize("0", "2025-11-25", emptyDeclared))
			p.want("0 initialization_error request_creation*")
			if waited := time.Since(began); waited != 0 {
				t.Errorf("the start came after %s, want at once", waited)
			}
		}
		p.post(initialize("0", "2025-11-25", emptyDeclared))
		p.want("0 " + serverResult)
	})
}

// The client asks again at the very moment at which the last start fails: the
// connection ends up either with a session that works, or failed and without one.
func TestInitializeAtTheMomentOfTheLastFailure(t *testing.T) {
	for range 100 {
		moment := make(chan struct{})
		u := &server{dial: func(_ context.Context, n int) error {
			if n == 1 {
				<-moment
				return errNoServer
			}
			return nil
		}}
		g, err := gateway.New(u, gateway.Options{MaxHandshakeAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		p := connect(t, g, plain)
		go close(moment)
		for i := range 200 { // answered by the failure, until one comes after it
			p.post(initialize(fmt.Sprint(i), "2025-11-25", emptyDeclared))
			if u.starts() > 1 {
				break
			}
		}
		if u.starts() > 1 {
			p.await(t, connstate.Ready)
		}
		p.c.Close("test over")
		if err := g.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
