package gateway_test

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
)

// When a client leaves, the server of a shared session gets the ends of its requests
// and subscriptions, and nothing else: the other clients go on.
func TestClientLeavesASharedSession(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{Sessions: gateway.SessionsShared}, func(t *testing.T, g *gateway.Gateway) {
		p, q := connect(t, g, plain), connect(t, g, plain)
		p.wantState(connstate.Ready) // or the messages of both wait at their gates
		q.wantState(connstate.Ready)
		subscribe := `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a://1"}}`
		p.post(request("1", "hang"), subscribe)
		q.post(request("1", "hang"))
		synctest.Wait()
		p.c.Close("left")
		synctest.Wait()
		u.session(t, 1).wantMethods(t, "initialize", "notifications/initialized", "hang", "resources/subscribe", "hang",
			"notifications/cancelled", "resources/unsubscribe")
		if got, want := string(u.session(t, 1).message(t, "notifications/cancelled").Params()), `{"requestId":2,`; got[:len(want)] != want {
			t.Errorf("the server was told %s, want %s…", got, want)
		}
		q.post(request("2", "tools/call"))
		q.want(answered("2", 1, "tools/call"))
	})
}

// A client that disconnects during a request does not end the session.
func TestClientLeavesASharedSessionWhileItAsks(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{Sessions: gateway.SessionsShared, ConnectRate: -1}, func(t *testing.T, g *gateway.Gateway) {
		for range 100 {
			p := connect(t, g, plain)
			p.wantState(connstate.Ready)
			var both sync.WaitGroup
			both.Go(func() {
				for i := 0; i < 100 && p.c.State() != connstate.Closed; i++ {
					p.post(request(strconv.Itoa(i), "hang"))
				}
			})
			both.Go(func() { p.c.Close("left") })
			both.Wait()
		}
		if n := u.starts(); n != 1 {
			t.Errorf("%d starts, want one: clients that left have ended the session of all", n)
		}
	})
}
