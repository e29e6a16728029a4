//go:build all

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// badServer is one way of a server to misbehave, and what becomes of the request
// that made it do so.
type badServer struct {
	how string
	// wants is the text of the result, or the reasons that the error may name.
	wants   string
	reasons []string
	// certain is that text where nobody else is on the session; empty: the same.
	certain string
	// ends: the server's process ends with it, or is ended.
	ends bool
	// flags are sse-server's.
	flags []string
}

func badServers() []badServer {
	impatient := []string{"--request-timeout", "1500ms"}
	return []badServer{
		{how: "null", certain: "done", reasons: []string{"invalid_response"}},
		{how: "hugenote", reasons: []string{"invalid_response", "session_lost"}},
		{how: "text", wants: "done"},
		{how: "binary", wants: "done"},
		{how: "half", reasons: []string{"session_lost"}, ends: true},
		{how: "nothing", reasons: []string{"timeout"}, flags: impatient},
		{how: "stderr", wants: "done"},
		{how: "orphans", wants: "done"},
		{how: "mute", reasons: []string{"session_lost"}, ends: true},
		{how: "flood", wants: "done"},
		{how: "lines", wants: "done"},
	}
}

// In each mode, each misbehaviour harms the request that caused it and no other:
// neither of the same client nor of another one, which asks at the same time with
// the same ids. Every request is answered once, and nothing is left behind.
func TestBadServerHarmsOnlyTheRequestThatItFails(t *testing.T) {
	t.Parallel()
	for _, bad := range badServers() {
		for mode, flags := range modes() {
			t.Run(bad.how+"/"+mode, func(t *testing.T) {
				t.Parallel()
				g := startGateway(t, slices.Concat(flags, bad.flags, fake(t))...)
				bad := bad // the modes run at the same time
				if bad.certain != "" && mode == "PerConnection" {
					bad.wants = bad.certain
				}
				bad.test(t, g)
			})
		}
	}
}

// A server that returns no ids, or others than it got, serves several clients that ask
// at the same time with the same ids, without any option.
func TestServersWithWrongIDsServeAll(t *testing.T) {
	t.Parallel()
	for ids, warning := range map[string]string{"none": "server answers without ids", "text": "server returns ids as strings"} {
		for mode, flags := range modes() {
			t.Run(ids+"/"+mode, func(t *testing.T) {
				t.Parallel()
				g := startGateway(t, slices.Concat(flags, fake(t, "--ids", ids))...)
				clients := map[string]*stream{"one": openStream(t, g.url), "two": openStream(t, g.url)}
				for id := range 20 {
					for name, s := range clients {
						s.accepted(echoRequest(id, name))
					}
				}
				for name, s := range clients {
					for id := range 20 {
						assertOwn(t, s, id, name)
					}
					assertEachAnsweredOnce(t, s)
					s.close()
				}
				if n := strings.Count(g.log.String(), warning); n != 1 {
					t.Errorf("%d warnings %q, want 1", n, warning)
				}
				g.stop()
			})
		}
	}
}

// A child that speaks only MCP 2026-07-28 serves clients of before.
func TestChildrenOf20260728Alone(t *testing.T) {
	t.Parallel()
	for mode, flags := range modes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, slices.Concat(flags, fake(t, "--modern"))...)
			clients := map[string]*stream{"one": openStream(t, g.url), "two": openStream(t, g.url)}
			for name, s := range clients {
				for id := range 10 {
					s.accepted(echoRequest(id, name))
				}
			}
			for name, s := range clients {
				for id := range 10 {
					assertOwn(t, s, id, name)
				}
				assertEachAnsweredOnce(t, s)
				s.close()
			}
			g.stop()
		})
	}
}

func (bad badServer) test(t *testing.T, g *gateway) {
	innocent, guilty := openStream(t, g.url), openStream(t, g.url)
	for _, s := range []*stream{innocent, guilty} {
		s.request("0", "tools/list", "{}") // now the gateway knows that echo may be repeated
	}
	files := openFiles(t, g)
	guilty.accepted(requestJSON("1", "tools/call", callParams("misbehave", fmt.Sprintf(`{"how":%q}`, bad.how))))
	for id := 1; id <= 20; id++ {
		innocent.accepted(echoRequest(id, "innocent"))
	}
	for id := 1; id <= 20; id++ {
		assertOwn(t, innocent, id, "innocent")
	}
	bad.assert(t, parseResponse(t, guilty.await("response to 1", answers("message", "1")).Data))
	for id := 21; id <= 30; id++ {
		assertEchoes(t, innocent, id, "innocent")
		assertEchoes(t, guilty, id, "guilty")
	}
	assertEachAnsweredOnce(t, innocent)
	assertEachAnsweredOnce(t, guilty)
	if n := strings.Count(g.log.String(), `"level":"WARN"`); n > 200 {
		t.Errorf("%d warnings, want at most 200", n)
	}
	if left := g.children(); bad.ends && len(left) > 2 {
		t.Errorf("processes below the gateway = %v: what misbehaved is still there", left)
	}
	g.eventually(fmt.Sprintf("no more than the %d open files of before", files), func() bool { return openFiles(t, g) <= files })
	innocent.close()
	guilty.close()
	g.stop() // asserts that nothing is left
}

func (bad badServer) assert(t *testing.T, got response) {
	t.Helper()
	if bad.wants != "" {
		if text := got.text(t); text != bad.wants {
			t.Errorf("the call = %q, want %q", text, bad.wants)
		}
		return
	}
	if got.Error == nil || !slices.ContainsFunc(bad.reasons, got.Error.names) {
		t.Errorf("the call = %+v (error %v), want an error that names one of %v", got.Result, got.Error, bad.reasons)
	}
}
