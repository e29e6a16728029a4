//go:build agents

package agents

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A newcomer gives sse-server the file that another client has, with nothing else, and Claude Code one URL, without a
// token: the agent has the tools of all servers of the file that are not dead, under their names, and calls them.
func TestNewcomerWithAnAgent(t *testing.T) {
	a := agents[slices.IndexFunc(agents, func(a agent) bool { return a.name == "Claude Code" })]
	first, journal := serverCommand(t)
	second, journalOfSecond := serverCommand(t, "--tool", slowTool)
	entry := func(command []string) any { return map[string]any{"command": command[0], "args": command[1:]} }
	file := filepath.Join(t.TempDir(), "claude_desktop_config.json")
	write(t, file, quote(t, map[string]any{"mcpServers": map[string]any{
		"first": entry(first), "My Second": entry(second), "broken": entry([]string{"false"}),
	}}))
	g := startGateway(t, ssetest.PrivateDir(t), nil, "--config", file)
	m := startModel(t, nil, calls(hello, slowTool+` {"message":"hello"}`)(nil)...)
	await(patience, func() bool {
		return strings.Contains(contentOf(journal), " tools/list\n") && strings.Contains(contentOf(journalOfSecond), " tools/list\n")
	})
	printed, ended := a.run(t, t.TempDir(), target{over: streamable, url: g.url("/mcp"), open: true}, m, 3*time.Minute)
	for at, tool := range []string{"echo", slowTool} {
		name := []string{"first__echo", "my-second__" + slowTool}[at]
		result, ok := m.result(at)
		m.mu.Lock()
		offered := m.offered[tool].name
		m.mu.Unlock()
		if !ok || !strings.Contains(result, "called with ") || !strings.HasSuffix(offered, name) || !ended {
			t.Errorf("%s: no result (%q), offered as %q; ended: %v\n%s\n%s\n%s", name, result, offered, ended, printed, m.journal(),
				contentOf(journal))
		}
	}
}
