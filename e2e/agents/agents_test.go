//go:build agents

package agents

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const (
	modelName = "scripted"
	prompt    = "Do what the script says."
	// token is in the configuration of each agent, and the gateway asks for it.
	token = "token-of-anna-0123456789"
)

// transport is how an agent reaches the server.
type transport string

const (
	streamable transport = "http"
	sse        transport = "sse"
	stdio      transport = "stdio" // the agent starts sse-server stdio
)

// agent is a program that people use, and how it is started.
type agent struct {
	name     string
	npm      string   // its package
	program  []string // files in node_modules; the first one is started
	args     []string
	env      func(home, model string) []string
	over     []transport
	settings []settings
	// entry returns the configuration file of the MCP server, below home, and its content.
	entry func(t *testing.T, s target) (file, content string)
}

// settings is a file of an agent's configuration that has nothing to do with MCP.
type settings struct{ file, content string }

// target is the server that an agent is to use.
type target struct {
	over    transport
	url     string
	command []string // of stdio
}

// agents are all agents that run without an account. Crush does so too, but its package in npm
// loads the program from another place.
var agents = []agent{
	{
		name: "Claude Code", npm: "@anthropic-ai/claude-code",
		program: []string{"@anthropic-ai/claude-code/bin/claude.exe"},
		args:    []string{"-p", prompt, "--model", modelName, "--allowedTools", "mcp__demo"},
		env: func(_, model string) []string {
			return []string{
				"ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=none", "TOKEN=" + token,
				"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			}
		},
		over:     []transport{streamable, sse, stdio},
		settings: []settings{{".claude/settings.json", `{"enableAllProjectMcpServers":true}`}},
		entry: func(t *testing.T, s target) (string, string) {
			return "work/.mcp.json", s.fill(t, documented(t, "Claude Code", "json"))
		},
	},
	{
		name: "Codex", npm: "@openai/codex",
		program: []string{"node/bin/node", "@openai/codex/bin/codex.js"},
		args:    []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt},
		env: func(_, model string) []string {
			return []string{"KEY=none", "TOKEN=" + token}
		},
		over: []transport{streamable, stdio},
		entry: func(t *testing.T, s target) (string, string) {
			entry := s.fill(t, documented(t, "Codex", "toml"))
			if s.over == stdio {
				entry = "[mcp_servers.demo]\ncommand = " + quote(t, s.command[0]) + "\nargs = " + quote(t, s.command[1:]) + "\n"
			}
			return ".codex/config.toml", "model = \"" + modelName + "\"\nmodel_provider = \"scripted\"\n\n" +
				"[model_providers.scripted]\nname = \"scripted\"\nbase_url = \"MODEL/v1\"\nwire_api = \"responses\"\nenv_key = \"KEY\"\n\n" + entry
		},
	},
}

// documented returns the first block of a language below a heading of docs/clients.md: agents
// are configured as it says.
func documented(t *testing.T, heading, language string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/clients.md")
	ssetest.Must(t, err)
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, block, ok := strings.Cut(section, "\n```"+language+"\n")
	block, _, end := strings.Cut(block, "\n```")
	if !found || !ok || !end {
		t.Fatalf("docs/clients.md has no block of %s below %q", language, heading)
	}
	return block + "\n"
}

// fill puts the server into an entry of the documentation. One of the form that most agents
// share becomes that of a program if the server is to be started.
func (s target) fill(t *testing.T, entry string) string {
	t.Helper()
	if s.over == stdio {
		return `{"mcpServers":{"demo":{"command":` + quote(t, s.command[0]) + `,"args":` + quote(t, s.command[1:]) + `}}}`
	}
	if s.over == sse {
		entry = strings.NewReplacer(`"type":"http"`, `"type":"sse"`, `"httpUrl"`, `"url"`, "streamable-http", "sse", "streamableHttp", "sse").Replace(entry)
	}
	return strings.NewReplacer(`"URL"`, quote(t, s.url), "${TOKEN}", "${TOKEN}", "Bearer TOKEN", "Bearer "+token).Replace(entry)
}

// quote returns JSON, which TOML and YAML understand too.
func quote(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	ssetest.Must(t, err)
	return string(raw)
}

// home makes a home directory for the agent, in which it finds its configuration. Its working
// directory is below it.
func (a agent) home(t *testing.T, s target, model string) string {
	t.Helper()
	home := t.TempDir()
	ssetest.Must(t, os.Mkdir(filepath.Join(home, "work"), 0o755))
	for _, f := range a.settings {
		write(t, filepath.Join(home, f.file), strings.ReplaceAll(f.content, "MODEL", model))
	}
	file, content := a.entry(t, s)
	write(t, filepath.Join(home, file), strings.ReplaceAll(content, "MODEL", model))
	return home
}

// run runs the agent to its end, and returns what it has printed. It must end by itself within
// the time, whatever its exit code: what it did is what counts.
func (a agent) run(t *testing.T, s target, m *model, limit time.Duration) string {
	t.Helper()
	home := a.home(t, s, m.URL)
	command := make([]string, 0, len(a.program)+len(a.args))
	for _, file := range a.program {
		command = append(command, modules(t, file))
	}
	command = slices.Concat(command, a.args)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = filepath.Join(home, "work")
	cmd.Env = append([]string{
		"HOME=" + home, "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1", "TMPDIR=" + t.TempDir(),
		"PATH=" + filepath.Dir(modules(t, "node/bin/node")) + ":" + os.Getenv("PATH"),
	}, a.env(home, m.URL)...)
	var out ssetest.Output
	cmd.Stdout, cmd.Stderr = &out, &out
	// The agent's own children end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	ssetest.Must(t, cmd.Start())
	end := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may have ended
	guard := time.AfterFunc(limit, func() {
		t.Errorf("%s does not end in %v", a.name, limit)
		end()
	})
	err := cmd.Wait()
	guard.Stop()
	end()
	return out.Tail() + "\n" + "exit: " + errorText(err)
}

func errorText(err error) string {
	if err == nil {
		return "0"
	}
	return err.Error()
}
