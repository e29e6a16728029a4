package e2e

import (
	"slices"
	"testing"
)

func TestClientThatSendsServerDiscoverFirstIsServed(t *testing.T) {
	forEachClient(t, discovers, func(t *testing.T, k kind) {
		g := startGateway(t, fake(t)...)
		c := connect(t, k, g.at(k))
		if got := c.saw().Opening; !k.oneShot && got != "server/discover" {
			t.Errorf("first message = %q, want server/discover: this client no longer tests what it should", got)
		}
		if got := mustCall(t, c, "echo", map[string]any{"message": "m"}); got != "m" {
			t.Errorf("echo = %q, want m", got)
		}
	})
}

func TestDiscoverIsRefusedAtOnceThoughTheServerIsSilent(t *testing.T) {
	t.Parallel()
	g := startGateway(t, slices.Concat([]string{"--initialization-timeout", "1m"}, fake(t, "--silent"))...)
	s := openStream(t, g.url)
	got := s.request(`"server-discover-probe-1"`, "server/discover", "{}")
	if got.Error == nil || got.Error.Code != -32601 {
		t.Errorf("server/discover = %+v, want error -32601", got)
	}
	if got := s.request("7", "ping", "{}"); got.Error != nil {
		t.Errorf("ping = %v, want a result", got.Error)
	}
}
