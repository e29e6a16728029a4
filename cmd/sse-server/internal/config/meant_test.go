package config

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// People are told of the client whose name they begin, or write with a few letters wrong.
func TestNearest(t *testing.T) {
	for text, want := range map[string]string{
		"tray": "trae", "claude": "claude-code", "claud-code": "claude-code", "Coedx": "codex", "gemini": "gemini-cli", "vscode": "vs-code",
		"": "", "xy": "", "netscape": "",
	} {
		if got := nearest(text, clients.Names(clients.All)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
