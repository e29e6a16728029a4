package gateway_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
)

func TestRepeatedInitializeWaitsForTheStartUnderWay(t *testing.T) {
	u := &server{dial: func(ctx context.Context, n int) error {
		switch n {
		case 1:
			return nil
		case 2:
			return errNoServer
		}
		return slow(3*time.Second)(ctx, n)
	}}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.wantState(connstate.Ready)
		p.post(initialize("1", "2025-06-18", `{"roots":{}}`))
		p.want()
		time.Sleep(2 * time.Second) // a first pause is under 1 s: the next start is under way
		p.wantState(connstate.Initializing)
		p.post(initialize("2", "2025-06-18", `{"roots":{}}`))
		time.Sleep(3 * time.Second)
		p.want("1 {*", "2 {*")
		if u.starts() != 3 {
			t.Errorf("%d starts, want 3", u.starts())
		}
	})
}

// A session that replaces a lost one declares the client's capabilities, also after a
// failed start, or if the client declares them only then.
func TestOwnCapabilitiesOutliveALoss(t *testing.T) {
	roots := func(t *testing.T, u *server, n int) {
		t.Helper()
		if got := string(u.session(t, n).message(t, "initialize").Params()); !strings.Contains(got, "roots") {
			t.Errorf("session %d was initialized with %s, want roots in it", n, got)
		}
	}
	t.Run("after a failed start", func(t *testing.T) {
		u := &server{dial: func(ctx context.Context, n int) error {
			switch {
			case n < 3:
				return nil
			case n == 3:
				return errNoServer
			}
			return slow(time.Second)(ctx, n)
		}}
		inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
			p := connect(t, g, plain)
			p.wantState(connstate.Ready)
			p.post(initialize("1", "2025-06-18", `{"roots":{}}`), request("2", "tools/list"))
			p.want("1 *", "2 *")
			u.session(t, 2).die()
			synctest.Wait()
			p.wantState(connstate.Failed)
			p.post(initialize("3", "2025-06-18", `{"roots":{}}`))
			time.Sleep(5 * time.Second)
			p.want("3 *")
			roots(t, u, 3)
		})
	})
	t.Run("said when there is no session", func(t *testing.T) {
		u := &server{dial: slow(time.Second)}
		inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
			p := connect(t, g, plain)
			p.post(request("1", "tools/list"))
			time.Sleep(2 * time.Second)
			p.want("1 *")
			u.session(t, 1).die()
			synctest.Wait()
			p.post(initialize("3", "2025-06-18", `{"roots":{}}`))
			time.Sleep(5 * time.Second)
			p.want("3 *")
			roots(t, u, 2)
		})
	})
}
