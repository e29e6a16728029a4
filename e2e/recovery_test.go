package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// One client crashes the server a hundred times in a row while two others go on
// asking. No stream ends, every request is answered, and what the others ask is
// answered well: echo may be repeated, and is.
func TestStreamsSurviveCrashes(t *testing.T) {
	t.Parallel()
	crashes := 20
	if all {
		crashes = 100
	}
	for mode, flags := range modes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, slices.Concat(flags, fake(t))...)
			crasher, others := openStream(t, g.url), []*stream{openStream(t, g.url), openStream(t, g.url)}
			crasher.request("0", "tools/list", "{}")
			for id := 1; id <= crashes; id++ {
				crasher.accepted(requestJSON(strconv.Itoa(id), "tools/call", callParams("crash", "{}")))
				for _, s := range others {
					s.accepted(echoRequest(id, "other"))
				}
				assertLost(t, crasher, strconv.Itoa(id), false)
				for _, s := range others {
					assertOwn(t, s, id, "other")
				}
				assertEchoes(t, crasher, 1000+id, "crasher") // a server that dies unproven would be paused
			}
			for _, s := range append(others, crasher) {
				assertEachAnsweredOnce(t, s)
			}
		})
	}
}

// assertLost asserts that the request was answered with session_lost.
func assertLost(t *testing.T, s *stream, id string, retryable bool) {
	t.Helper()
	got := parseResponse(t, s.await("response to "+id, answers("message", id)).Data)
	if got.Error == nil || !got.Error.names("session_lost") || !got.Error.names(fmt.Sprintf(`"retryable":%t`, retryable)) {
		t.Errorf("request %s = %+v (error %v), want session_lost with retryable %t", id, got.Result, got.Error, retryable)
	}
}

// safeRequests change nothing: method and params, and the tools that say so.
func safeRequests(t *testing.T) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "crashed")
	return map[string]string{
		"tools/list":     "{}",
		"resources/read": `{"uri":"test://greeting"}`,
		"tools/call":     callParams("solid", fmt.Sprintf(`{"file":%q}`, file)),
	}
}

// crashOnce has the fake server end when it has got the first such request.
func crashOnce(t *testing.T, method string) []string {
	t.Helper()
	if method == "tools/call" {
		return fake(t) // the tool does it
	}
	return fake(t, "--crash-on", method, "--crash-mark", filepath.Join(t.TempDir(), "mark"))
}

// The server dies with the request in hand; the client notices nothing.
func TestSafeRequestIsAnsweredByTheNextSession(t *testing.T) {
	t.Parallel()
	for mode, flags := range modes() {
		for method, params := range safeRequests(t) {
			t.Run(mode+"/"+method, func(t *testing.T) {
				t.Parallel()
				g := startGateway(t, slices.Concat(flags, crashOnce(t, method))...)
				s := openStream(t, g.url)
				if method == "tools/call" {
					s.request("0", "tools/list", "{}") // says that solid is idempotent
				}
				if got := s.request("1", method, params); got.Error != nil {
					t.Errorf("%s = error %v, want the answer of the next session", method, got.Error)
				}
				if repeated, _ := g.metric("mcp_sse_requests_repeated_total"); repeated != 1 {
					t.Errorf("requests repeated = %v, want 1: did the server crash?", repeated)
				}
				assertEachAnsweredOnce(t, s)
			})
		}
	}
}

// Whether a tool that promises nothing did its work before the crash, nobody knows.
func TestUnsafeCallIsNeverRepeated(t *testing.T) {
	t.Parallel()
	for mode, flags := range modes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, slices.Concat(flags, fake(t))...)
			s := openStream(t, g.url)
			s.request("0", "tools/list", "{}")
			file := fmt.Sprintf(`{"file":%q}`, filepath.Join(t.TempDir(), "crashed"))
			s.accepted(requestJSON("1", "tools/call", callParams("fragile", file)))
			assertLost(t, s, "1", false)
			if got := s.call("2", "fragile", file); got != "survived" {
				t.Errorf("fragile = %q, want survived", got)
			}
		})
	}
}

// A request that kills the server does so twice, not for ever.
func TestSafeRequestIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	for mode, flags := range modes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, slices.Concat(flags, fake(t))...)
			s := openStream(t, g.url)
			s.request("0", "tools/list", "{}")
			s.accepted(requestJSON("1", "tools/call", callParams("cursed", "{}")))
			assertLost(t, s, "1", true)
			assertEchoes(t, s, 2, "client")
			g.stop() // the log is written in the background, and is complete now
			if got := len(g.started()); got != 3 {
				t.Errorf("servers started = %d, want 3: one, one for the repeat, one after it", got)
			}
		})
	}
}

// hangs are the flags that make the gateway suspect a hang soon.
var hangs = []string{"--request-timeout", "1s"}

// A server that reads and answers nothing more is replaced once nothing is in
// flight and it has missed its pings.
func TestHungServerIsReplaced(t *testing.T) {
	t.Parallel()
	for mode, flags := range modes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, slices.Concat(flags, hangs, fake(t))...)
			s := openStream(t, g.url)
			before := s.call("1", "pid", "{}")
			got := s.request("2", "tools/call", callParams("misbehave", `{"how":"frozen"}`))
			if got.Error == nil || !got.Error.names("timeout") && !got.Error.names("session_lost") {
				t.Errorf("the call that hangs = %+v (error %v), want timeout or session_lost", got.Result, got.Error)
			}
			g.eventually("the server is replaced", func() bool { return len(g.started()) == 2 })
			if after := s.call("3", "pid", "{}"); after == before {
				t.Errorf("the call after the hang was answered by the process that hangs")
			}
		})
	}
}

// A server that answers pings is slow, and one that takes long is at work.
func TestSlowServerIsNotReplaced(t *testing.T) {
	t.Parallel()
	for mode, flags := range modes() {
		for how, asked := range map[string][]string{
			"late":    {"--request-timeout", "20s"}, // 3 s for one call
			"nothing": {"--request-timeout", "1s"},  // never, but it is there
		} {
			t.Run(mode+"/"+how, func(t *testing.T) {
				t.Parallel()
				g := startGateway(t, slices.Concat(flags, asked, fake(t))...)
				s := openStream(t, g.url)
				before := s.call("1", "pid", "{}")
				s.request("2", "tools/call", callParams("misbehave", fmt.Sprintf(`{"how":%q}`, how)))
				s.accepted(requestJSON("3", "tools/call", callParams("misbehave", `{"how":"late"}`)))
				s.await("response to 3", answers("message", "3")) // long enough for two pings, or a timeout
				if after := s.call("4", "pid", "{}"); after != before {
					t.Errorf("the slow server was replaced")
				}
			})
		}
	}
}
