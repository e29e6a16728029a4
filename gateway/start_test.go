package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// slow delays every start.
func slow(d time.Duration) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errNoServer = errors.New("no such file")

// failing makes the first n starts fail.
func failing(n int) func(context.Context, int) error {
	return func(_ context.Context, start int) error {
		if start <= n {
			return errNoServer
		}
		return nil
	}
}

func TestReadyWithoutAWordOfTheClient(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Settings{AnnounceDelay: 100 * time.Millisecond}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, connstate.Client{})
		time.Sleep(100*time.Millisecond - 1)
		p.want()
		u.session(t, 1).wantMethods(t) // the server starts with the GET, and is not initialized yet
		time.Sleep(time.Nanosecond)
		p.want("mcp-response: auto " + serverResult)
		u.session(t, 1).wantMethods(t, "initialize", "notifications/initialized")
		params := string(u.session(t, 1).message(t, "initialize").Params())
		want := `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcp-sse","version":"`
		if len(params) < len(want) || params[:len(want)] != want {
			t.Errorf("synthetic params = %s, want %s…", params, want)
		}
		p.post(request("1", "tools/list"))
		p.want(answered("1", 1, "tools/list"), "mcp-response: "+answered("1", 1, "tools/list")) // undecided: both names
	})
}

func TestQuietWithholdsTheAnnouncement(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, connstate.Client{Quiet: true})
		time.Sleep(time.Minute)
		p.want()
		p.wantState(connstate.Ready)
	})
}

// Early messages wait at the gate, and pass in their order.
func TestEarlyMessagesWaitInOrder(t *testing.T) {
	u := &server{dial: slow(time.Second)}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		var methods, answers []string
		for i := range 20 {
			method := fmt.Sprintf("m%d", i)
			p.post(request(fmt.Sprint(i), method))
			methods = append(methods, method)
			answers = append(answers, answered(fmt.Sprint(i), 1, method))
		}
		p.post(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		p.want()
		time.Sleep(time.Second)
		p.want(answers...)
		u.session(t, 1).wantMethods(t, append(append([]string{"initialize", "notifications/initialized"}, methods...), "notifications/roots/list_changed")...)
	})
}

func TestGateIsBounded(t *testing.T) {
	u := &server{dial: slow(time.Second)}
	inFakeTime(t, u, gateway.Settings{GateQueue: 2}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(request("1", "a"), request("2", "b"), request("3", "c"), `{"jsonrpc":"2.0","method":"notifications/x"}`)
		p.want("3 gate_full retryable=true")
		time.Sleep(time.Second)
		p.want(answered("1", 1, "a"), answered("2", 1, "b"))
	})
}

func TestPendingIsBounded(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Settings{MaxPending: 2}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.wantState(connstate.Ready)
		p.post(request("1", "hang"), request("2", "hang"), request("3", "hang"), request("4", "ping"))
		p.want("3 too_many_requests retryable=true", "4 too_many_requests retryable=true")
	})
}

func TestDuplicateID(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{RequestTimeout: time.Second}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.wantState(connstate.Ready)
		p.post(request("1", "hang"), request("1", "tools/list"), request(`"1"`, "tools/list"))
		p.want("1 duplicate_id retryable=false", answered(`"1"`, 1, "tools/list"))
		time.Sleep(time.Second)
		p.want("1 timeout retryable=false")
		p.post(request("1", "tools/list"))
		p.want(answered("1", 1, "tools/list"))
	})
}

// Late is not failed: requests that waited too long get an error, the start goes on
// and is used.
func TestLateIsNotFailed(t *testing.T) {
	u := &server{dial: slow(20 * time.Second)}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage})
		time.Sleep(time.Second)
		p.post(request("1", "tools/list"))
		time.Sleep(4*time.Second - 1)
		p.want()
		time.Sleep(time.Nanosecond)
		p.want("mcp-response: auto initialization_error request_processing attempt 1")
		time.Sleep(time.Second)
		p.want("1 initialization_error request_processing attempt 1")
		p.wantState(connstate.Initializing)
		time.Sleep(10 * time.Second)
		p.post(request("2", "tools/list"))
		time.Sleep(4 * time.Second) // the start takes 20 s in all
		p.want("mcp-response: auto "+serverResult, answered("2", 1, "tools/list"))
		if u.starts() != 1 {
			t.Errorf("%d starts, want the one that was slow", u.starts())
		}
	})
}

func TestInitializeWaitsForTheStartItself(t *testing.T) {
	inFakeTime(t, &server{dial: slow(20 * time.Second)}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-06-18", emptyDeclared))
		time.Sleep(20*time.Second - 1)
		p.want()
		time.Sleep(time.Nanosecond)
		p.want(`0 {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"played","version":"1.0"}}`)
	})
}

func TestStartTimeout(t *testing.T) {
	u := &server{dial: slow(time.Hour)}
	inFakeTime(t, u, gateway.Settings{Options: gateway.Options{StartTimeout: 10 * time.Second}, MaxHandshakeAttempts: 2}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-06-18", emptyDeclared))
		time.Sleep(20*time.Second - 1)
		p.want()
		time.Sleep(time.Minute)
		p.want("0 initialization_error request_creation attempt 2")
		p.wantState(connstate.Failed)
		if u.starts() != 2 {
			t.Errorf("%d starts, want 2", u.starts())
		}
	})
}

func TestFailedStartIsTriedAgain(t *testing.T) {
	u := &server{dial: failing(2)}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage})
		p.wantState(connstate.Failed)
		time.Sleep(time.Minute) // longer than two pauses
		p.want("mcp-response: auto initialization_error request_creation attempt 1",
			"mcp-response: auto initialization_error request_creation attempt 2",
			"mcp-response: auto "+serverResult)
		p.wantState(connstate.Ready)
		p.post(request("1", "tools/list"))
		p.want(answered("1", 3, "tools/list"))
	})
}

func slowFailure(context.Context, int) error {
	time.Sleep(time.Second)
	return errNoServer
}

func TestCloseDuringTheStart(t *testing.T) {
	for name, u := range map[string]*server{
		"dial":      {dial: slow(time.Hour)},
		"handshake": {handle: func(*serverSession, *jsonrpc.Message) bool { return true }},
		"pause":     {dial: failing(100)},
		"hold":      {},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, u, withHold, func(t *testing.T, g *gateway.Gateway) {
				p := connect(t, g, plain)
				if name != "hold" {
					p.post(request("1", "tools/list"), initialize("0", "2025-11-25", emptyDeclared))
				}
				synctest.Wait()
				p.c.Close("client")
				synctest.Wait()
				if n := u.open(); n != 0 {
					t.Errorf("%d sessions are left", n)
				}
			})
		})
	}
}

// ping and server/discover are answered in any state.
func TestAnsweredHereInAnyState(t *testing.T) {
	for state, u := range map[connstate.State]*server{
		connstate.Initializing: {dial: slow(time.Second)}, connstate.Ready: {}, connstate.Failed: {dial: failing(1)}, connstate.Draining: {},
	} {
		inFakeTime(t, u, gateway.Settings{MaxHandshakeAttempts: 1}, func(t *testing.T, g *gateway.Gateway) {
			p := connect(t, g, plain)
			synctest.Wait()
			if state == connstate.Draining {
				if _, err := p.c.Drain(); err != nil {
					t.Fatal(err)
				}
			}
			p.wantState(state)
			p.post(request(`"p"`, "ping"), request("2", "server/discover"))
			p.want(`"p" {}`, "2 error -32601")
		})
	}
}
