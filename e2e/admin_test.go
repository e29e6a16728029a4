package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestConnectionsAreListedOnTheAdminAddressAlone(t *testing.T) {
	t.Parallel()
	g := startGateway(t, fake(t)...)
	s := openStream(t, g.url)
	s.call("1", "echo", `{"message":"m"}`)
	list := g.adminGet("/connections")
	if !json.Valid([]byte(list)) || !strings.Contains(list, "ready") {
		t.Errorf("/connections = %s, want JSON with a connection that is ready", list)
	}
	main := strings.TrimSuffix(g.url, "/sse")
	for _, path := range []string{"/connections", "/metrics"} {
		if got := status(t, s.http, http.MethodGet, main+path); got != http.StatusNotFound {
			t.Errorf("%s on the main address = %d, want 404 beside an admin address", path, got)
		}
	}
}
