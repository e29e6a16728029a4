package e2e

import (
	"fmt"
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
