//go:build all

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// sharable are servers with the tools log, touch and grow, which speak without
// being asked.
func sharable(t *testing.T) map[string][]string {
	t.Helper()
	return map[string][]string{
		"Stdio":      {"--", built(t, "everything")},
		"Streamable": at(startProgram(t, nil, built(t, "everything"), "-transport", "streamable")),
		"Stateless":  at(startProgram(t, nil, built(t, "everything"), "-transport", "stateless")),
		"SSE":        at(startProgram(t, nil, built(t, "everything"), "-transport", "sse")),
	}
}

func notification(method string) func(event) bool {
	return func(e event) bool { return e.Name == "message" && hasMethod(e, method) }
}

// silence asserts that no such notification has come to a client, nor comes while
// it makes a call.
func silence(t *testing.T, s *stream, id, method string) {
	t.Helper()
	s.call(id, "echo", `{"message":"flush"}`)
	if i := slices.IndexFunc(s.seen(), notification(method)); i >= 0 {
		t.Errorf("a client that is not meant got %s", s.seen()[i].Data)
	}
}

// A subscription is one client's, though the session is all clients'.
func TestUpdateReachesThoseWhoHaveSubscribed(t *testing.T) {
	t.Parallel()
	for name, server := range sharable(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, append([]string{"--sessions", "shared"}, server...)...)
			anna, ben := openStream(t, g.url), openStream(t, g.url)
			const uri = `{"uri":"test://greeting"}`
			if got := anna.request("1", "resources/subscribe", uri); got.Error != nil {
				t.Fatalf("subscribe: %v", got.Error)
			}
			touchUntil(t, ben, anna, uri)
			silence(t, ben, "2", "notifications/resources/updated")
			if got := anna.request("3", "resources/unsubscribe", uri); got.Error != nil {
				t.Fatalf("unsubscribe: %v", got.Error)
			}
			if got := ben.request("3", "resources/subscribe", uri); got.Error != nil {
				t.Fatalf("subscribe: %v", got.Error)
			}
			before := count(anna, "notifications/resources/updated")
			touchUntil(t, anna, ben, uri)
			anna.call("4", "echo", `{"message":"flush"}`)
			if after := count(anna, "notifications/resources/updated"); after != before {
				t.Errorf("updates = %d after %d, though the client has unsubscribed", after, before)
			}
		})
	}
}

// touchUntil has one client touch the resource until the other is told: a
// stateless server listens a little later than it has answered.
func touchUntil(t *testing.T, toucher, told *stream, uri string) {
	t.Helper()
	for n := range 100 {
		toucher.call(fmt.Sprintf(`"touch-%s-%d"`, told.id, n), "touch", uri)
		if _, err := told.find(notification("notifications/resources/updated"), 500*time.Millisecond); err == nil {
			return
		}
	}
	t.Fatalf("no update of %s came; came:\n%s", uri, told.dump())
}

func count(s *stream, method string) int {
	n := 0
	for _, e := range s.seen() {
		if notification(method)(e) {
			n++
		}
	}
	return n
}

// A list that changes is everybody's.
func TestListChangeReachesAll(t *testing.T) {
	t.Parallel()
	for name, server := range sharable(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, append([]string{"--sessions", "shared"}, server...)...)
			anna, ben := openStream(t, g.url), openStream(t, g.url)
			ben.request("1", "tools/list", "{}")
			grown := anna.call("2", "grow", "{}")
			for _, s := range []*stream{anna, ben} {
				s.await("tools/list_changed", notification("notifications/tools/list_changed"))
			}
			ben.request("3", "tools/list", "{}")
			if got := ben.await("response to 3", answers("message", "3")).Data; !strings.Contains(got, grown) {
				t.Errorf("tools = %s, want %s among them", got, grown)
			}
		})
	}
}

// A log line may hold what one client's call was about. Where the server does not
// say whose it is, only the levels decide, and those who have set none get none.
func TestLogLevelIsTheClients(t *testing.T) {
	t.Parallel()
	for name, server := range sharable(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, server...)
			quiet, verbose := openStream(t, g.url), openStream(t, g.url)
			for s, level := range map[*stream]string{quiet: "error", verbose: "debug"} {
				if got := s.request("1", "logging/setLevel", fmt.Sprintf(`{"level":%q}`, level)); got.Error != nil {
					t.Fatalf("setLevel %s: %v", level, got.Error)
				}
				s.call("2", "log", `{"level":"info","message":"mine"}`)
			}
			verbose.await("the log line", notification("notifications/message"))
			silence(t, quiet, "3", "notifications/message")
		})
	}
}
