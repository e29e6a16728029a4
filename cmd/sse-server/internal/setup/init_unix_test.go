//go:build unix

package setup

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A report of init about a foreign file holds no escape sequence, and no default of a variable, which may be a
// secret. A pipe in the place of a file is an error.
func TestInitOfAHostileFile(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	ssetest.Must(t, os.WriteFile(".mcp.json", []byte(`{"mcpServers": {"a\u001b[2J": {"command": "x", "args": ["${ARG\u001b]0;A\u0007:-hidden1}", "${KEY:-hidden2}"],
		"env": {"P": "with ${Q:-hidden3}", "TOK": "${TOKEN:-hidden4}"}, "own\u001b[2J": 1}, "red\u001b[31m": {"command": 5}}}`), 0o600))
	ssetest.Must(t, os.MkdirAll(filepath.Join(home, ".codex"), 0o700))
	ssetest.Must(t, syscall.Mkfifo(filepath.Join(home, ".codex", "config.toml"), 0o600))
	p := runWith(t, map[string]string{"HOME": home}, "init")
	p.wantExit(exit.OK)
	all := p.out.String() + p.log.String()
	if strings.ContainsAny(all, "\x1b\x07") || strings.Contains(all, "hidden") || !strings.Contains(all, "config.toml: it is not a regular file") {
		t.Errorf("got %q", all)
	}
}
