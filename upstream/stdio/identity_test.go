package stdio

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// What changes the server changes its identity, and what does not, does not. The values of variables
// are not in it.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "server.js")
	ssetest.Must(t, os.WriteFile(script, []byte("one"), 0o600))
	base := Command{Path: "sh", Args: []string{"server.js", "--fast"}, Dir: dir, Env: []string{"TOKEN=s3cret", "A=1"}}
	identity := base.Identity()
	if strings.Contains(identity, "s3cret") {
		t.Errorf("%s has the value of a variable", identity)
	}

	ssetest.Must(t, os.WriteFile(filepath.Join(dir, "data.db"), []byte("one"), 0o600))
	data := base
	data.Args = append(data.Args, "data.db")
	before := data.Identity()
	ssetest.Must(t, os.WriteFile(filepath.Join(dir, "data.db"), []byte("three"), 0o600))
	ssetest.Want(t, "with other data", data.Identity(), before)

	same := base
	same.Env = []string{"A=1", "TERM=xterm", "SSH_CLIENT=192.0.2.1", "VSCODE_IPC_HOOK_CLI=/tmp/a", "CODEX_THREAD_ID=1", "PATH=/tmp/x:/bin", "TOKEN=s3cret"}
	ssetest.Want(t, "with another terminal", same.Identity(), identity)

	for what, change := range map[string]func(c *Command){
		"another program":        func(c *Command) { c.Path = "ls" },
		"another argument":       func(c *Command) { c.Args = []string{"server.js"} },
		"another directory":      func(c *Command) { c.Dir = os.TempDir() },
		"another variable":       func(c *Command) { c.Env = []string{"TOKEN=other", "A=1"} },
		"a secret of an agent's": func(c *Command) { c.Env = append(c.Env[:2:2], "COPILOT_MCP_TOKEN=alice") },
		"a key of an agent's":    func(c *Command) { c.Env = append(c.Env[:2:2], "CLAUDE_API_KEY=alice") },
		"a token of npm":         func(c *Command) { c.Env = append(c.Env[:2:2], "npm_config__authToken=alice") },
		"no environment":         func(c *Command) { c.Env = nil },
		"another file":           func(*Command) { ssetest.Must(t, os.WriteFile(script, []byte("three"), 0o600)) },
	} {
		other := base
		change(&other)
		if other.Identity() == identity {
			t.Errorf("%s: the identity is the same", what)
		}
		ssetest.Must(t, os.WriteFile(script, []byte("one"), 0o600))
	}
}
