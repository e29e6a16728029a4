package e2e

import (
	"testing"
	"time"
)

// All clients are idle on one gateway until a stream read by hand has shown five
// seconds of heartbeats; then each must still have the stream it opened.
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
	r := openReader(t, g.url+"?event=mcp-response")
	start := time.Now()
	s.await("a heartbeat after 5 s", func(e event) bool { return e.IsComment() && e.at.Sub(start) >= 5*time.Second })
	comments := 0
	for _, e := range s.seen() {
		if e.IsComment() {
			comments++
		}
	}
	if comments < 4 || comments > 12 {
		t.Errorf("comments in 5 s = %d, want about one a second", comments)
	}
	if got := s.call("1", "echo", `{"message":"m"}`); got != "m" {
		t.Errorf("echo = %q, want m", got)
	}
	r.post(requestJSON("1", "ping", "{}"))
	r.await("response to ping", func(m response) bool { return string(m.ID) == "1" })
	for k, c := range clients {
		if got := mustCall(t, c, "echo", map[string]any{"message": k.name}); got != k.name {
			t.Errorf("%s: echo = %q", k.name, got)
		}
		if got := c.saw().Streams; got != k.streams() {
			t.Errorf("%s opened %d streams, want %d", k.name, got, k.streams())
		}
	}
}

func TestHeartbeatIsAnEventInTheMCPResponseDialect(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "--heartbeat-interval", "100ms")
	s := openStream(t, g.url+"?event=mcp-response")
	beat := s.await("heartbeat", func(e event) bool { return e.Name == "heartbeat" })
	assertNotification(t, beat)
	for _, e := range s.seen() {
		if e.IsComment() {
			t.Errorf("came: %q, want no comments in this dialect", e.Raw)
		}
	}
}
