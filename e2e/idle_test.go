//go:build all

package e2e

import (
	"testing"
)

// All clients are idle on one gateway until a stream read by hand has shown five
// heartbeats; then each must still have the stream it opened.
func TestStreamsStayAliveWhenIdle(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "--heartbeat-interval", "1s")
	clients := map[*kind]client{}
	for _, k := range g.endpoints().kinds() {
		if !k.oneShot {
			clients[&k] = connect(t, k, g.at(k))
		}
	}
	s := openStream(t, g.url)
	comments := 0
	s.await("five heartbeats", func(e event) bool {
		if e.IsComment() {
			comments++
		}
		return comments == 5
	})
	if got := s.call("1", "echo", `{"message":"m"}`); got != "m" {
		t.Errorf("echo = %q, want m", got)
	}
	for k, c := range clients {
		if got := mustCall(t, c, "echo", map[string]any{"message": k.name}); got != k.name {
			t.Errorf("%s: echo = %q", k.name, got)
		}
		if got := c.saw().Streams; got != k.streams() {
			t.Errorf("%s opened %d streams, want %d", k.name, got, k.streams())
		}
	}
}
