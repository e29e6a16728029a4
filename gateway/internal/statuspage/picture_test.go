package statuspage

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
)

var update = flag.Bool("update", false, "write the page of which the documentation has pictures")

// The page of five servers, of which the documentation has pictures, is what this package makes of them. A step of the
// browser's test (e2e/clients/browser/status.mjs) takes the pictures of the file.
// To write it: go test ./gateway/internal/statuspage -run Picture -update
func TestPageOfThePictures(t *testing.T) {
	const path = "testdata/overview.html"
	synctest.Test(t, func(t *testing.T) {
		_, body := get(t, serving(fiveServers(time.Now())...), "/status")
		body = regexp.MustCompile(`data-sum="\d+"`).ReplaceAllString(body, `data-sum="0"`) // it differs by process
		if *update {
			ssetest.Must(t, os.WriteFile(path, []byte(body), 0o644))
		} else if readFile(t, path) != body {
			t.Errorf("%s is not the page: run this test with -update, and take the pictures anew", path)
		}
	})
}

// fiveServers returns servers in different conditions, with their connections.
func fiveServers(now time.Time) []Server {
	said := func(name, version string, s Server) Server {
		s.Initialized = &handshake.Server{Name: name, Version: version, ProtocolVersion: "2025-11-25"}
		return s
	}
	started := func(ago time.Duration) handshake.Health { return handshake.Health{Started: now.Add(-ago)} }
	const lost = "the server did not answer initialize: exit status 1; stderr: cannot reach the database " +
		"at db.internal:5432 (tried 3 times in 30 s); see https://wiki.internal/tickets/database"
	return []Server{
		said("docs-search", "2.3.1", Server{
			Name: "docs", Upstream: "child process", Health: started(3 * time.Hour), Tools: &multiplex.ToolList{Tools: 12},
			Totals: metrics.Totals{Sessions: 5, Children: 5, ChildMemory: 310 << 20}, Hour: hour(5, 60, 12),
			Connections: readySince(now, "claude-code", 18*time.Minute, "ann", "ben", "cem", "dora", "eve"),
		}),
		said("ticket-desk", "0.9.4", Server{
			Name: "tickets", Upstream: "child process", Tools: &multiplex.ToolList{Tools: 7},
			Health: handshake.Health{
				Started: now.Add(-26 * time.Minute), Failing: true, Failed: now.Add(-15 * time.Second), Failure: lost,
			},
			Totals: metrics.Totals{Restarts: 14, Crashes: 14}, Hour: hour(1, 20, 1),
			Connections: failedSince(now, "cursor", 15*time.Second, "ann", "finn"),
		}),
		said("calendar", "1.4.0", Server{
			Name: "calendar", Upstream: "in process", Health: started(3 * time.Hour), Tools: &multiplex.ToolList{Tools: 5},
			Totals: metrics.Totals{Sessions: 1}, Hour: hour(2, 30, 0),
			Connections: readySince(now, "vscode", 41*time.Minute, "ben", "gina"),
		}),
		said("weather", "1.0.0", Server{
			Name: "weather", Upstream: "URL", Tools: &multiplex.ToolList{Tools: 3},
			Health: handshake.Health{
				Started: now.Add(-2 * time.Minute), Failed: now.Add(-3 * time.Minute),
				Failure: `the session with the server "weather" was lost: connection reset by peer`,
			},
			Totals: metrics.Totals{Sessions: 3, Restarts: 2}, Hour: hour(1, 15, 20),
			Connections: readySince(now, "codex-mcp-client", 2*time.Minute, "cem", "eve", "hugo"),
		}),
		said("archive", "3.0.2", Server{
			Name: "archive", Upstream: "child process", Tools: &multiplex.ToolList{Tools: 4},
			Health: handshake.Health{Started: now.Add(-5 * time.Hour), Known: true}, Hour: hour(0, 0, 0),
		}),
	}
}

// hour returns counts that look like work: so many handshakes and requests in most minutes, and an error in one of so
// many.
func hour(handshakes, requests, errorEvery int) (h metrics.Hour) {
	for i := range h {
		wave := i * i % 7 // some minutes have more
		h[i] = [3]int{metrics.Handshakes: handshakes * (wave % 3), metrics.Requests: requests * (4 + wave) / 7}
		if errorEvery > 0 && (errorEvery > 1 && i%errorEvery == 5 || errorEvery == 1 && i > 53) {
			h[i][metrics.Errors] = 1 + wave
		}
	}
	return h
}

// readySince returns a connection of each principal.
func readySince(now time.Time, client string, ago time.Duration, principals ...string) (all []connstate.Snapshot) {
	for i, principal := range principals {
		c := conn(fmt.Sprintf("%s%04d", principal[:3], i), client, now.Add(-ago-time.Duration(i)*time.Minute))
		c.Principal, c.RequestsDone, c.InFlight = principal, int64(31*(i+1)), i%2
		all = append(all, c)
	}
	return all
}

// failedSince returns a connection of each principal whose server does not start.
func failedSince(now time.Time, client string, ago time.Duration, principals ...string) []connstate.Snapshot {
	all := readySince(now, client, ago, principals...)
	for i := range all {
		all[i].State, all[i].Ready, all[i].InFlight = connstate.Failed, time.Time{}, 0
		all[i].LastFailure = &connstate.Failure{Phase: "request_creation", Reason: "start_failed", At: now.Add(-ago)}
	}
	return all
}
