package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestReadinessIsTrueOnlyIfTheServerStarts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"Works":      {fake(t), http.StatusOK},
		"EndsAtOnce": {fake(t, "--exit"), http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, c.args...)
			if got := status(t, newHTTP(t), http.MethodGet, g.admin+"/healthz"); got != http.StatusOK {
				t.Errorf("/healthz = %d, want 200: the process works", got)
			}
			g.eventually("/readyz tells whether the server starts", func() bool {
				return status(t, newHTTP(t), http.MethodGet, g.admin+"/readyz") == c.want
			})
		})
	}
}

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

func TestLogTellsTheLifeOfAConnectionWithoutItsID(t *testing.T) {
	t.Parallel()
	g := startGateway(t, slices.Concat([]string{"--log-level", "info"}, fake(t))...)
	s := openStream(t, g.url)
	s.call("1", "echo", `{"message":"m"}`)
	s.close()
	g.eventually("the log tells that the connection closed", func() bool {
		return strings.Contains(g.log.String(), "connection closed")
	})
	log := g.log.String()
	for line := range strings.Lines(log) {
		if !json.Valid([]byte(line)) {
			t.Errorf("log line is no JSON: %s", line)
		}
	}
	for _, want := range []string{"connection opened", "connection closed"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	if strings.Contains(log, s.id) {
		t.Errorf("the log at info holds the connection's id %s, which is a key to it", s.id)
	}
}
