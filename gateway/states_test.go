package gateway_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// walk is a path through the states of a start.
type walk struct {
	server *server
	opts   gateway.Options
	steps  func(t *testing.T, u *server, g *gateway.Gateway)
}

func walks() map[string]walk {
	open := func(t *testing.T, _ *server, g *gateway.Gateway) {
		connect(t, g, plain)
		time.Sleep(time.Minute)
	}
	closeAt := func(d time.Duration) func(*testing.T, *server, *gateway.Gateway) {
		return func(t *testing.T, _ *server, g *gateway.Gateway) {
			p := connect(t, g, plain)
			time.Sleep(d)
			p.c.Close("left")
			synctest.Wait()
		}
	}
	return map[string]walk{
		"silent":       {&server{}, withHold, open},
		"shared":       {&server{}, sharing, open},
		"never starts": {&server{dial: failing(1000)}, gateway.Options{}, open},
		"refuses": {&server{handle: says(func(id jsonrpc.ID) []byte {
			return jsonrpc.NewError(id, jsonrpc.Errorf(-32603, "no"))
		})}, gateway.Options{MaxHandshakeAttempts: 2}, open},
		"crashes at once": {&server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
			if m.Method == "notifications/initialized" {
				s.die()
				time.Sleep(time.Millisecond) // until its reader knows
			}
			return false
		}}, gateway.Options{MaxHandshakeAttempts: 2}, open},
		"leaves while the gate opens": {&server{dial: slow(time.Second)}, gateway.Options{}, func(t *testing.T, u *server, g *gateway.Gateway) {
			u.handle = func(_ *serverSession, m *jsonrpc.Message) bool {
				for _, c := range g.Registry().All() {
					if m.Method == "tools/list" {
						c.Close("left")
					}
				}
				return false
			}
			connect(t, g, plain).post(request("1", "tools/list"))
			time.Sleep(2 * time.Second)
		}},
		"crashes later":         {&server{handle: crashesOnceInitialized}, gateway.Options{MaxHandshakeAttempts: 2}, open},
		"leaves while it dials": {&server{dial: slow(time.Minute)}, withHold, closeAt(time.Second)},
		"leaves while it holds": {&server{}, withHold, closeAt(50 * time.Millisecond)},
		"leaves while it waits": {&server{handle: silence}, withHold, closeAt(time.Second)},
		"leaves in the pause":   {&server{dial: failing(1000)}, gateway.Options{}, closeAt(1)},
		"leaves after the end":  {&server{dial: failing(1000)}, gateway.Options{MaxHandshakeAttempts: 1}, closeAt(time.Second)},
		"leaves":                {&server{}, withHold, closeAt(time.Second)},
		"comes with more": {&server{handle: silence}, withHold, func(t *testing.T, _ *server, g *gateway.Gateway) {
			p := connect(t, g, plain)
			time.Sleep(time.Second)
			p.post(initialize("0", "2025-11-25", `{"roots":{}}`))
			synctest.Wait()
		}},
		"gave up, asks again": {&server{dial: failing(1)}, gateway.Options{MaxHandshakeAttempts: 1}, func(t *testing.T, _ *server, g *gateway.Gateway) {
			p := connect(t, g, plain)
			time.Sleep(time.Minute)
			p.post(request("1", "tools/list"))
			p.want(answered("1", 2, "tools/list"))
		}},
		"is lost": {&server{}, withHold, func(t *testing.T, u *server, g *gateway.Gateway) {
			connect(t, g, plain)
			time.Sleep(time.Minute)
			u.session(t, 1).die()
			synctest.Wait()
		}},
	}
}

// The walks make each move of the table, and no other.
func TestStartMakesTheMovesOfItsTable(t *testing.T) {
	made := map[string]bool{}
	for name, w := range walks() {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, w.server, w.opts, func(t *testing.T, g *gateway.Gateway) {
				moves := g.WatchStarts()
				w.steps(t, w.server, g)
				maps.Copy(made, moves())
			})
		})
	}
	may := gateway.StartMoves()
	for _, move := range slices.Sorted(maps.Keys(made)) {
		if !may[move] {
			t.Errorf("%s: is not in the table", move)
		}
	}
	for _, move := range slices.Sorted(maps.Keys(may)) {
		if !made[move] {
			t.Errorf("%s: was not made", move)
		}
	}
}
