package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// server is a real MCP server, and one call that it must answer.
type server struct {
	name string
	args []string // of sse-server
	tool string
	call map[string]any
	want string // in the text of the result
}

func servers(t *testing.T) []server {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("written by the test"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []server{
		{
			name: "Demo", args: []string{"--demo"},
			tool: "echo", call: map[string]any{"message": "grüße 世界"}, want: "grüße 世界",
		},
		{
			name: "Everything", args: everything(t),
			tool: "get-sum", call: map[string]any{"a": 20, "b": 22}, want: "42",
		},
		{
			name: "Filesystem",
			args: []string{"--", node(t), npm(t, "@modelcontextprotocol/server-filesystem/dist/index.js"), dir},
			tool: "read_text_file", call: map[string]any{"path": filepath.Join(dir, "note.txt")}, want: "written by the test",
		},
	}
}

// everything returns the arguments that put server-everything behind the gateway.
func everything(t *testing.T) []string {
	t.Helper()
	return []string{"--", node(t), npm(t, "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"}
}

func TestClientConnectsListsAndCalls(t *testing.T) {
	t.Parallel()
	for _, s := range servers(t) {
		t.Run(s.name, func(t *testing.T) {
			g := startGateway(t, s.args...)
			forEachClient(t, every, func(t *testing.T, k kind) {
				c := connect(t, k, g.url)
				tools, err := c.listTools(within(t))
				if err != nil {
					t.Fatalf("list tools: %v", err)
				}
				if !slices.Contains(tools, s.tool) {
					t.Errorf("tools = %v, want %s among them", tools, s.tool)
				}
				if got := mustCall(t, c, s.tool, s.call); !strings.Contains(got, s.want) {
					t.Errorf("%s(%v) = %q, want %q in it", s.tool, s.call, got, s.want)
				}
				if !k.oneShot && c.saw().Streams != 1 {
					t.Errorf("streams opened = %d, want 1", c.saw().Streams)
				}
			})
		})
	}
}

func TestClientSendsServerDiscoverFirstAndFallsBack(t *testing.T) {
	forEachClient(t, discovers, func(t *testing.T, k kind) {
		g := startGateway(t, fake(t)...)
		c := connect(t, k, g.url)
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
