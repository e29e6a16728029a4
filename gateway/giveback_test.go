package gateway_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A request that arrives while an unused session returns to the pool gets its answer.
func TestRequestBesideTheReturnOfASession(t *testing.T) {
	opts := gateway.Settings{Options: gateway.Options{Warm: 1, ConnectRate: -1}, AnnounceDelay: 20 * time.Millisecond}
	inFakeTime(t, &server{}, opts, func(t *testing.T, g *gateway.Gateway) {
		for range 50 {
			p := connect(t, g, plain)
			time.Sleep(20 * time.Millisecond)
			var both sync.WaitGroup
			both.Go(func() { p.post(initialize("0", "2025-06-18", `{"roots":{}}`)) })
			both.Go(func() { p.post(request("1", "tools/list")) })
			both.Wait()
			if got := p.take(); len(got) != 2 {
				t.Errorf("got %q, want two answers", got)
			}
			p.c.Close("left")
		}
	})
}

// A shared session that takes no messages lives on for answers on their way, but not
// beyond the end of the gateway.
func TestShutdownBesideASharedSessionThatTakesNoMore(t *testing.T) {
	u := &server{deaf: func(s *serverSession) bool { return s.n == 1 && s.count("deafen") > 0 }}
	u.handle = func(_ *serverSession, m *jsonrpc.Message) bool { return m.Method == "deafen" }
	inFakeTime(t, u, sharing, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.wantState(connstate.Ready)
		p.post(request("1", "deafen"))
		time.Sleep(proven)
		p.post(request("2", "tools/call"))
		p.want(answered("2", 2, "tools/call"))
		if u.session(t, 1).over() {
			t.Fatal("the first session is over, its answer may still come")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		p.c.Close("left")
		if err := g.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if n := u.open(); n > 0 {
			t.Errorf("%d sessions are open after Shutdown", n)
		}
	})
}
