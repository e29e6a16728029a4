package e2e

import (
	"strings"
	"sync"
	"testing"
)

// Sampling, elicitation and roots, from the server to the one client that is
// meant and back. All clients are connected at the same time.
func TestEachChildAsksItsClient(t *testing.T) { eachAsks(t, stdioServers()) }

func eachAsks(t *testing.T, servers []server) {
	t.Parallel()
	for _, s := range some(servers) {
		if len(s.questions) == 0 {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, s.start(t)...)
			forEachAsked(t, g.endpoints(), s, func(who, tool, text string, err error) {
				if err != nil || !strings.Contains(text, who) {
					t.Errorf("%s: %s = %q, error %v, want %s in it", who, tool, text, err, who)
				}
			})
		})
	}
}

// A shared session promises the server nothing, so it must not ask; and what it
// asks all the same is refused: no client gets what was meant for another. A client of
// 2026-07-28 that calls a server of 2026-07-28 is asked in the result of its own call.
func TestEachSharedChildAsksNobody(t *testing.T) { eachAsksNobody(t, stdioServers()) }

func eachAsksNobody(t *testing.T, servers []server) {
	t.Parallel()
	for _, s := range some(servers) {
		if len(s.questions) == 0 {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, append([]string{"--sessions", "shared"}, s.start(t)...)...)
			forEachAsked(t, g.endpoints(), s, func(who, tool, text string, err error) {
				modern := strings.HasSuffix(s.name, "Stateless") || s.name == "MCPGoStreamable" // which speaks all revisions
				direct := modern && strings.HasSuffix(who, "AutoStreamable")
				if err == nil && !(direct && strings.Contains(text, who)) {
					t.Errorf("%s: %s = %q, want an error: nobody may be asked", who, tool, text)
				}
			})
		})
	}
}

// forEachAsked has each question asked of each client, all at the same time.
func forEachAsked(t *testing.T, at endpoints, s server, check func(who, tool, text string, err error)) {
	t.Helper()
	var wg sync.WaitGroup
	for _, k := range at.kinds() {
		if !k.answers {
			continue
		}
		wg.Go(func() {
			who := "friend-of-" + k.name
			c := k.open(t, at[k.over], who)
			if err := c.connect(within(t)); err != nil {
				t.Errorf("%s: connect: %v", who, err)
				return
			}
			for _, q := range s.questions {
				args := q.args
				if args == nil {
					args = map[string]any{}
				}
				text, err := c.callTool(within(t), q.tool, args)
				check(who, q.tool, text, err)
			}
		})
	}
	wg.Wait()
}
