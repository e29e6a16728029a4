package clientfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A server stays where it is if it depends on the folder in which its client starts it.
func TestDependsOnFolder(t *testing.T) {
	for what, test := range map[string]struct {
		found Found
		want  string
	}{
		"a package":              {Found{Command: []string{"npx", "-y", "@x/server@1.2", "--verbose"}}, ""},
		"an image":               {Found{Command: []string{"docker", "run", "-i", "ghcr.io/github/github-mcp-server"}}, ""},
		"whole paths":            {Found{Command: []string{"/usr/bin/node", "/srv/x.js", "--db=/srv/x.db", "~/notes"}}, ""},
		"a URL":                  {Found{URL: "https://x.example/mcp"}, ""},
		"relative to its folder": {Found{Command: []string{"node", "x.js"}, Dir: "/srv"}, ""},
		"a program":              {Found{Command: []string{"./server"}}, "it has a relative path"},
		"the folder":             {Found{Command: []string{"npx", "server-filesystem", "."}}, "it has a relative path"},
		"a script":               {Found{Command: []string{"node", "build/index.js"}}, "it has a relative path"},
		"an option":              {Found{Command: []string{"x", "--config=../x.yaml"}}, "it has a relative path"},
		"a variable":             {Found{Command: []string{"x"}, Env: map[string]string{"DB": "./x.db"}}, "it has a relative path"},
		"dir":                    {Found{Command: []string{"x"}, Dir: "tools"}, "it has a relative path: tools"},
		"env-file":               {Found{Command: []string{"x"}, EnvFile: ".env"}, "it has a relative path: .env"},
		"a reference":            {Found{Command: []string{"x", "${workspaceFolder}/y"}}, "it has ${workspaceFolder}"},
		"one with a root":        {Found{Command: []string{"x", "${workspaceFolder:api}"}}, "it has ${workspaceFolder:api}"},
		"of the environment":     {Found{Command: []string{"x"}, Env: map[string]string{"ROOT": "${env:PWD}"}}, "it has ${env:PWD}"},
		"another variable":       {Found{Command: []string{"x"}, Env: map[string]string{"KEY": "${KEY}"}}, ""},
	} {
		ssetest.Want(t, what, test.found.dependsOnFolder(), test.want)
	}
}

// Rules that name tools of a server are found by the names that its client has for them, and others are not.
func TestRules(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	settings := filepath.Join(home, ".claude", "settings.json")
	ssetest.Must(t, os.Mkdir(filepath.Dir(settings), 0o700))
	ssetest.Must(t, os.WriteFile(settings, []byte(`{
		// mine
		"permissions": {"allow": ["mcp__git_hub__x", "mcp__git_hub", "Bash(ls)", "mcp__git_hub2__x"], "deny": ["mcp__memory__*"]},
		"hooks": {"PreToolUse": [{"matcher": "Write|mcp__git_hub__.*"}]}}`), 0o600))
	file := filepath.Join(home, ".claude.json")
	ssetest.Must(t, os.WriteFile(file, []byte(`{"mcpServers": {"git.hub": {"command": "mcp__git_hub__x"}}, "allowed": {"mcp__git_hub__y": true}}`), 0o600))
	ssetest.Want(t, "rules", Rules(named(t, "claude-code"), home, file, []string{"git.hub"}), []Rule{
		{file, "allowed", "mcp__git_hub__y"},
		{settings, "hooks.PreToolUse.matcher", "Write|mcp__git_hub__.*"},
		{settings, "permissions.allow", "mcp__git_hub__x"}, {settings, "permissions.allow", "mcp__git_hub"},
	})
	ssetest.Want(t, "rules of a client whose names are not known", len(Rules(named(t, "cursor"), home, file, []string{"git.hub"})), 0)
}
