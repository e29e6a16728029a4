//go:build all

package e2e

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A client of MCP 2026-07-28, with the SDK for TypeScript, is asked for the login in the way that it understands, and its
// subscription says when the tools of the server are there. With a client that has its user visit addresses, the call
// itself is asked for that (input_required), and answered after the login.
func TestVisitOfALoginByAModernClient(t *testing.T) {
	for name, c := range map[string]struct {
		tool, action string
		visits       int
		hasLink      bool // in the text of the first answer
	}{
		"it visits the address":                      {"echo", "accept", 1, false},
		"its user declines":                          {"echo", "decline", 1, true},
		"it cannot visit addresses":                  {"echo", "", 0, true},
		"the tool login":                             {"login", "", 0, true},
		"the tool login, and it can visit addresses": {"login", "accept", 0, true},
	} {
		for of, start := range map[string]func(t *testing.T) string{
			"a server with sessions": func(t *testing.T) string {
				return startProgram(t, nil, node(t), "guarded.mjs", startIssuer(t)).url
			},
			"a server of 2026-07-28": func(t *testing.T) string {
				_, base := startProtected(t, startIssuer(t), "")
				return base + "/jwt/mcp"
			},
		} {
			t.Run(name+", "+of, func(t *testing.T) {
				t.Parallel()
				g := startGateway(t, "--url", start(t))
				client := exec.CommandContext(within(t), node(t), "visitor.mjs", g.url, c.tool)
				if c.action != "" {
					client.Args = append(client.Args, c.action)
				}
				client.Dir, client.WaitDelay = clientsDir, patience
				var errors output
				client.Stderr = &errors
				out, err := client.Output()
				if err != nil {
					t.Fatalf("%v\n%s\n%s", err, errors.String(), g.log.Tail())
				}
				type answer struct {
					Text    string `json:"text"`
					IsError bool   `json:"isError"`
				}
				var seen struct {
					Protocol   string   `json:"protocol"`
					Subscribes bool     `json:"subscribes"`
					Before     []string `json:"before"`
					Visits     int      `json:"visits"`
					Mode       string   `json:"mode"`
					First      answer   `json:"first"`
					Changed    []string `json:"changed"`
					Echo       answer   `json:"echo"`
				}
				ssetest.Must(t, json.Unmarshal(out, &seen))
				ssetest.Want(t, "protocol", seen.Protocol, "2026-07-28")
				ssetest.Want(t, "it subscribes to the list", seen.Subscribes, true)
				ssetest.Want(t, "tools before the login", seen.Before, []string{"login"})
				ssetest.Want(t, "visits", seen.Visits, c.visits)
				if c.visits > 0 {
					ssetest.Want(t, "mode of the elicitation", seen.Mode, "url")
				}
				ssetest.Want(t, "the first answer has the link", strings.Contains(seen.First.Text, "Log in at http://127.0.0.1:"), c.hasLink)
				ssetest.Want(t, "the first answer is an error", seen.First.IsError, c.hasLink && c.tool == "echo")
				if !c.hasLink {
					ssetest.Want(t, "the call that was asked for the visit", seen.First.Text, "hi")
				}
				ssetest.Want(t, "echo is new", slices.Contains(seen.Changed, "echo"), true)
				ssetest.Want(t, "login is gone", slices.Contains(seen.Changed, "login"), false)
				ssetest.Want(t, "a call after the login", seen.Echo, answer{Text: "hi"})
			})
		}
	}
}
