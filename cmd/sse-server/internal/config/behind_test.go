package config

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// An entry that starts sse-server leads to what that serves, also if npx starts it.
func TestServerBehindItsOwnEntry(t *testing.T) {
	c := mustLoad(t, nil)
	for _, test := range []struct{ command, leadsTo string }{
		{"sse-server stdio --url https://a/mcp", "https://a/mcp"},
		{"/opt/sse-server.exe stdio -- notes --all", "notes --all"},
		{"npx -y mcp-sse stdio --url https://a/mcp", "https://a/mcp"},
		{"npx -y mcp-sse@1.2.3 stdio -- npx -y notes", "npx -y notes"},
		{"npx -y mcp-sse --config servers.yaml", ""}, // it has servers of its own
		{"npx -y mcp-sse stdio --config servers.yaml", ""},
		{"npx -y mcp-sse-other stdio -- notes", "npx -y mcp-sse-other stdio -- notes"},
		{"npx -y mcp-sse stdio --url http://127.0.0.1:8080/mcp", ""}, // this one
		{"mcp-sse stdio -- notes", "notes"},
	} {
		behind, ok := c.Behind(Entry{Name: "a", Command: strings.Fields(test.command)})
		got := behind.URL + strings.Join(behind.Command, " ")
		if !ok {
			got = ""
		}
		ssetest.Want(t, test.command, got, test.leadsTo)
	}
}
