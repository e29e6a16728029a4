package gateway_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
)

var healthOf = regexp.MustCompile(`<span class="mark [a-z ]+">([a-z ]+)</span></td>\s*<th scope="row" data-label="Server"><a id="s-([a-z]+)"`)

// The status page shows how each server is: before its first start, after it, while starts
// fail, and when the server is repaired.
func TestStatusPageShowsHealth(t *testing.T) {
	broken := &server{dial: func(_ context.Context, n int) error {
		if n <= 3 {
			return errors.New("exec: <tool>: not found")
		}
		return nil
	}}
	inFakeTimeWithSeveral(t, nil, func(t *testing.T, s *gateway.Servers, all []*gateway.Gateway) {
		admin := s.Admin()
		want := func(when, want string) {
			t.Helper()
			time.Sleep(2 * time.Second) // viewers share a look
			_, body := ask(admin, "/status")
			var got []string
			for _, m := range healthOf.FindAllStringSubmatch(body, -1) {
				got = append(got, m[2]+" "+m[1])
			}
			equal(t, when, strings.Join(got, ", "), want)
		}
		want("at first", "a not started, b not started")
		connect(t, all[0], plain).wantState(connstate.Ready)
		_ = all[1].Ready(t.Context()) // a probe
		want("after a failed probe", "b failing, a healthy")
		asks(t, admin, "/status/servers/b", 200, "<bdi>the server could not be started: exec: &lt;tool&gt;: not found</bdi>")
		p := connect(t, all[1], plain)
		time.Sleep(time.Minute) // longer than the pauses
		p.wantState(connstate.Ready)
		want("repaired", "b unstable, a healthy")
		p.post(initialize("1", "2025-11-25", emptyDeclared))
		time.Sleep(5 * time.Minute)
		want("long after", "a healthy, b healthy")
		asks(t, admin, "/status/servers/b", 200, "<bdi>peer 0</bdi>", "<bdi>played 1.0</bdi>, MCP 2025-11-25")
		must(t, s.Replace(all[0]))
		want("without b", "a healthy")
		equal(t, "error", all[1].Shutdown(t.Context()), nil)
		s.Drain()
		want("while it drains", "a draining")
	}, &server{}, broken)
}

// A known server has no process until somebody calls it, and the status page says so by the word of all pages.
func TestStatusPageShowsThatAKnownServerIsCached(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		said := func(when string, want bool) {
			t.Helper()
			time.Sleep(2 * time.Second) // viewers share a look
			_, body := ask(g.Admin(), "/status")
			equal(t, when+": it is cached", strings.Contains(body, `<span class="mark cached">cached</span>`), want)
		}
		said("at first", false)
		learned(t, g, u)
		time.Sleep(time.Hour) // the warm process has ended
		p := returns(t, g)
		said("with a client that looks", true)
		p.post(request("1", "tools/call"))
		p.want(answered("1", 2, "tools/call"))
		said("with one that calls", false)
		time.Sleep(time.Hour)
		said("after process-idle", true)
	})
}

// The status page counts the tools that are remembered, before anybody has come, and calls the only server by its name.
func TestStatusPageCountsToolsWithoutAClient(t *testing.T) {
	tools := map[string]string{"tools/list": `{"tools":[{"name":"a"},{"name":"b"}]}`}
	opts := remembering()
	opts.Name, opts.Remember.Dir = "mine", t.TempDir()
	inFakeTime(t, &server{capabilities: withLists, handle: lists(tools)}, opts, func(t *testing.T, g *gateway.Gateway) {
		_, err := forprogram.Of(g).CheckStart(t.Context())
		equal(t, "error of the check", err, nil)
	})
	u := &server{}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		asks(t, g.Admin(), "/status", 200, `<a id="s-mine" href="status/servers/mine">mine</a>`, `<td data-label="Tools" class="n">2</td>`)
		asks(t, g.Admin(), "/status/servers/mine", 200, "<dd>2, 0 characters of descriptions</dd>")
		equal(t, "starts", u.starts(), 0)
	})
}

// A server that ends soon after each start is failing all the time, although its starts work.
func TestStatusPageShowsACrashLoop(t *testing.T) {
	for _, mode := range []gateway.Sessions{gateway.SessionsPerConnection, gateway.SessionsShared} {
		t.Run(string(mode), func(t *testing.T) {
			u := &server{}
			inFakeTime(t, u, gateway.Options{Sessions: mode}, func(t *testing.T, g *gateway.Gateway) {
				admin := g.Admin()
				connectReady(t, g)
				for n := 1; n <= 4; n++ {
					u.session(t, n).die()
					for waited := 0; u.starts() == n && waited < 60; waited++ {
						time.Sleep(time.Second)
						if _, body := ask(admin, "/status"); !strings.Contains(body, "The server is failing") || !strings.Contains(body, "lost: EOF") {
							t.Fatalf("after crash %d: not failing, or not why:\n%s", n, body)
						}
					}
				}
				time.Sleep(time.Hour)
				asks(t, admin, "/status", 200, "The server is healthy")
			})
		})
	}
}
