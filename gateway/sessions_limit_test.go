package gateway_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
)

// alive returns the number of sessions whose Close has not returned.
func (u *server) alive() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := 0
	for _, s := range u.sessions {
		s.mu.Lock()
		if !s.closed {
			n++
		}
		s.mu.Unlock()
	}
	return n
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
				if n := int(metric(t, g, "mcp_sse_sessions")); n != tt.most || n != u.alive() {
					t.Errorf("mcp_sse_sessions is %d, and %d sessions have not ended, want %d", n, u.alive(), tt.most)
				}
				p := connect(t, g, plain)
				p.post(initialize("1", "2025-11-25", emptyDeclared))
				time.Sleep(25 * time.Second) // by now the others have ended
				p.want("1 " + serverResult)
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
