package e2e

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

// Sampling, elicitation and roots, from the server to the one client that is
// meant and back. All clients are connected at the same time.
func TestEachServerAsksItsClient(t *testing.T) {
	forEachAsking(t, nil, func(t *testing.T, _ server, who, tool, text string, err error) {
		if err != nil || !strings.Contains(text, who) {
			t.Errorf("%s: %s = %q, error %v, want %s in it", who, tool, text, err, who)
		}
	})
}

// A shared session promises the server nothing, so it must not ask; and what it
// asks all the same is refused: no client gets what was meant for another. A client of
// 2026-07-28 that calls a server of 2026-07-28 is asked in the result of its own call.
func TestEachSharedServerAsksNobody(t *testing.T) {
	forEachAsking(t, []string{"--sessions", "shared"}, func(t *testing.T, s server, who, tool, text string, err error) {
		modern := strings.HasSuffix(s.name, "Stateless") || s.name == "MCPGoStreamable" // which speaks all revisions
		direct := modern && strings.HasSuffix(who, "AutoStreamable")
		if err == nil && !(direct && strings.Contains(text, who)) {
			t.Errorf("%s: %s = %q, want an error: nobody may be asked", who, tool, text)
		}
	})
}

// forEachAsking has each question of each server that has some asked of each client.
func forEachAsking(t *testing.T, flags []string, check func(t *testing.T, s server, who, tool, text string, err error)) {
	t.Helper()
	t.Parallel()
	for _, s := range servers() {
		if len(s.questions) == 0 {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, slices.Concat(flags, s.start(t))...)
			forEachAsked(t, unlike(), g.url, s, func(who, tool, text string, err error) { check(t, s, who, tool, text, err) })
		})
	}
}

// forEachAsked has each question asked of each client, all at the same time.
func forEachAsked(t *testing.T, clients []kind, url string, s server, check func(who, tool, text string, err error)) {
	t.Helper()
	var wg sync.WaitGroup
	for _, k := range clients {
		if !k.answers {
			continue
		}
		wg.Go(func() {
			who := "friend-of-" + k.name
			c := k.open(t, url, who)
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
