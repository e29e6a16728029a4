//go:build all

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// speaker is a shell script that answers each line with what the printf format
// says.
func speaker(answer string) []string {
	return []string{"--", "sh", "-c", `while read line; do printf '` + answer + `\n'; done`}
}

// initializeResult is an answer to the gateway's first request.
const initializeResult = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`

// The documented alert, errors / all > 0.1, fires whenever clients get no session,
// for real programs and a real remote server.
func TestAlertFiresWhenClientsGetNoSession(t *testing.T) {
	t.Parallel()
	vanished := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(vanished, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(refuses.Close)
	for name, tc := range map[string]struct {
		server []string
		leaves bool
		reason string
	}{
		"HangsClientStays":  {fake(t, "--silent"), false, "timeout"},
		"HangsClientLeaves": {fake(t, "--silent"), true, "timeout"},
		"ExitsAtOnce":       {fake(t, "--exit"), false, "start_failed"},
		"ExitsAfterEachStart": {[]string{"--", "sh", "-c",
			`read line; echo '` + initializeResult + `'; read line; exit 1`}, false, "gave_up"},
		"AnswersWithAnError": {speaker(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}`), false, "rejected"},
		"NoResult":           {speaker(`{"jsonrpc":"2.0","id":1,"result":"hello"}`), false, "bad_answer"},
		"NoMCPServer":        {speaker("hello"), false, "timeout"},
		"Echo":               {[]string{"--", "cat"}, false, "bad_answer"},
		"BinaryMissing":      {[]string{"--", vanished}, false, "start_failed"},
		"RemoteRefuses":      {[]string{"--url", refuses.URL + "/mcp"}, false, "unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, append([]string{"--initialization-timeout", "500ms", "--start-timeout", "1s", "--max-handshake-attempts", "2"}, tc.server...)...)
			if name == "BinaryMissing" {
				_ = os.Remove(vanished) // found when the gateway began, and gone since
			}
			for range 3 {
				s := openStream(t, g.url)
				if tc.leaves {
					g.eventually("the start is late", func() bool { return strings.Contains(s.dump(), "still starting") })
					s.close()
				}
			}
			g.eventually("the alert fires", func() bool {
				errors, all := handshakes(g)
				why, _ := g.metricOf("mcp_sse_handshakes_total", fmt.Sprintf("reason=%q", tc.reason))
				return all > 0 && errors/all > 0.1 && why > 0
			})
		})
	}
}

// Clients that are served, and clients that leave before the server is up, do not
// cause it.
func TestAlertIsSilentWhenClientsComeAndGo(t *testing.T) {
	t.Parallel()
	g := startGateway(t, fake(t, "--start-delay", "300ms")...)
	for i := range 12 {
		s := openStream(t, g.url)
		if i%2 == 0 {
			s.request("1", "tools/list", "{}")
		}
		s.close()
	}
	g.eventually("all have ended", func() bool {
		open, _ := g.metric("mcp_sse_connections")
		_, all := handshakes(g)
		return open == 0 && all >= 12
	})
	if errors, all := handshakes(g); errors/all > 0.1 {
		t.Errorf("%v errors of %v, want no alert", errors, all)
	}
}

// handshakes are those that failed, and all.
func handshakes(g *gateway) (errors, all float64) {
	g.t.Helper()
	errors, _ = g.metricOf("mcp_sse_handshakes_total", `result="error"`)
	all, _ = g.metric("mcp_sse_handshakes_total")
	return errors, all
}

// metricOf is metric for the series with that label.
func (g *gateway) metricOf(name, label string) (sum float64, ok bool) {
	g.t.Helper()
	for line := range strings.Lines(g.adminGet("/metrics")) {
		if !strings.HasPrefix(line, name+"{") || !strings.Contains(line, label) {
			continue
		}
		var value float64
		if _, err := fmt.Sscan(line[strings.LastIndexByte(line, '}')+1:], &value); err != nil {
			g.t.Fatalf("metric %q: %v", line, err)
		}
		sum, ok = sum+value, true
	}
	return sum, ok
}
