//go:build all

package e2e

import (
	"slices"
	"testing"
)

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
