//go:build agents

package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	env      func(model string) []string
	over     []transport
	settings []settings
	// lacks has, by column of the table, what the program cannot do, or cannot do with the gateway as
	// it is, and why.
	lacks map[string]string
	// entry returns the configuration file of the MCP server, below home, and its content.
	entry func(t *testing.T, s target) (file, content string)
}

func (a agent) takes(over transport) bool { return slices.Contains(a.over, over) }

// settings is a file of an agent's configuration that has nothing to do with MCP.
type settings struct{ file, content string }

// target is the server that an agent is to use.
type target struct {
	over    transport
	url     string
	command []string // of stdio
	open    bool     // asks for no token
}

// agents are all agents that run without an account. Crush does so too, but its package in npm
// loads the program from another place.
var agents = []agent{
	{
		name: "Claude Code", npm: "@anthropic-ai/claude-code",
		program: []string{"@anthropic-ai/claude-code/bin/claude.exe"},
		args:    []string{"-p", prompt, "--model", modelName, "--allowedTools", "mcp__demo"},
		env: func(model string) []string {
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
		env: func(model string) []string {
			return []string{"KEY=none", "TOKEN=" + token}
		},
		over: []transport{streamable, stdio},
		lacks: map[string]string{
			"new tool": "it keeps the list with which it began",
		},
		entry: func(t *testing.T, s target) (string, string) {
			entry := s.fill(t, documented(t, "Codex", "toml"))
			if s.over == stdio {
				entry = "[mcp_servers.demo]\ncommand = " + quote(t, s.command[0]) + "\nargs = " + quote(t, s.command[1:]) + "\n"
			}
			return ".codex/config.toml", "model = \"" + modelName + "\"\nmodel_provider = \"scripted\"\n\n" +
				"[model_providers.scripted]\nname = \"scripted\"\nbase_url = \"MODEL/v1\"\nwire_api = \"responses\"\nenv_key = \"KEY\"\n\n" + entry
		},
	},
	{
		name: "opencode", npm: "opencode-ai",
		program: []string{"opencode-ai/bin/opencode.exe"},
		args:    []string{"run", "--model", "scripted/" + modelName, prompt},
		env: func(string) []string {
			return []string{"TOKEN=" + token, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"}
		},
		over: []transport{streamable, sse, stdio},
		settings: []settings{{".config/opencode/opencode.json", `{"share":"disabled","provider":{"scripted":{"npm":"@ai-sdk/openai-compatible",` +
			`"options":{"baseURL":"MODEL/v1","apiKey":"none"},"models":{"scripted":{"attachment":true,"modalities":{"input":["text","image"],"output":["text"]}}}}}}`}},
		lacks: map[string]string{
			"long call": "it waits for 60 s without progress",
		},
		entry: func(t *testing.T, s target) (string, string) {
			if s.over == stdio {
				return "work/opencode.json", `{"mcp":{"demo":{"type":"local","command":` + quote(t, s.command) + `}}}`
			}
			return "work/opencode.json", s.fill(t, documented(t, "opencode", "json"))
		},
	},
	{
		name: "Gemini CLI", npm: "@google/gemini-cli",
		program: []string{"node/bin/node", "@google/gemini-cli/bundle/gemini.js"},
		args:    []string{"--yolo", "--prompt", prompt},
		env: func(model string) []string {
			return []string{
				"TOKEN=" + token, "GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + model,
				"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_TELEMETRY_ENABLED=false",
			}
		},
		over: []transport{streamable, sse, stdio},
		entry: func(t *testing.T, s target) (string, string) {
			const auth = `{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"enableAutoUpdate":false},`
			return ".gemini/settings.json", auth + s.fill(t, documented(t, "Gemini CLI", "json"))[1:]
		},
	},
	{
		name: "Qwen Code", npm: "@qwen-code/qwen-code",
		program: []string{"node/bin/node", "@qwen-code/qwen-code/cli-entry.js"},
		args:    []string{"--yolo", "--auth-type", "openai", "--prompt", prompt},
		env: func(model string) []string {
			return []string{"TOKEN=" + token, "OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + model + "/v1", "OPENAI_MODEL=" + modelName}
		},
		over: []transport{streamable, sse, stdio},
		lacks: map[string]string{
			"new tool": "it keeps the list with which it began",
		},
		entry: func(t *testing.T, s target) (string, string) {
			const sees = `{"model":{"generationConfig":{"modalities":{"image":true}}},`
			return ".qwen/settings.json", sees + s.fill(t, documented(t, "Qwen Code", "json"))[1:]
		},
	},
	{
		name: "Copilot CLI", npm: "@github/copilot",
		program: []string{"node/bin/node", "@github/copilot/npm-loader.js"},
		args:    []string{"--prompt", prompt, "--allow-all-tools", "--disable-builtin-mcps", "--no-auto-update"},
		env: func(model string) []string {
			return []string{
				"TOKEN=" + token, "COPILOT_PROVIDER_BASE_URL=" + model + "/v1", "COPILOT_PROVIDER_API_KEY=none",
				"COPILOT_MODEL=" + modelName, "COPILOT_PROVIDER_MODEL_ID=gpt-4.1", "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false",
			}
		},
		over: []transport{streamable, sse, stdio},
		lacks: map[string]string{
			"image": "it shows images to models only that it knows to see",
		},
		entry: func(t *testing.T, s target) (string, string) {
			return ".copilot/mcp-config.json", s.fill(t, documented(t, "Copilot CLI", "json"))
		},
	},
	{
		name: "Cline", npm: "cline",
		program: []string{"@cline/cli-linux-x64/bin/cline"},
		args:    []string{"--provider", "openai-compatible", "--model", modelName, prompt},
		env:     func(string) []string { return []string{"CLINE_NO_AUTO_UPDATE=1"} },
		over:    []transport{streamable, sse, stdio},
		settings: []settings{{".cline/data/settings/providers.json", `{"version":1,"lastUsedProvider":"openai-compatible","modes":{},` +
			`"providers":{"openai-compatible":{"settings":{"provider":"openai-compatible","apiKey":"none","model":"scripted","baseUrl":"MODEL/v1"},` +
			`"updatedAt":"2026-01-01T00:00:00.000Z","tokenSource":"manual"}}}`}},
		lacks: map[string]string{
			"new tool":      "it keeps the list with which it began",
			"long call":     "it waits for 60 s, unless its configuration says more",
			"with progress": "it waits for 60 s, unless its configuration says more",
		},
		entry: func(t *testing.T, s target) (string, string) {
			return ".cline/data/settings/cline_mcp_settings.json", s.fill(t, documented(t, "Cline", "json"))
		},
	},
	{
		name: "Continue", npm: "@continuedev/cli",
		program: []string{"node/bin/node", "@continuedev/cli/dist/cn.js"},
		args:    []string{"--print", "--auto", prompt},
		env:     func(string) []string { return []string{"CONTINUE_TELEMETRY_ENABLED=0"} },
		over:    []transport{streamable, sse, stdio},
		lacks: map[string]string{
			"new tool":      "it keeps the list with which it began",
			"long call":     "it waits for 60 s, unless its configuration says more",
			"with progress": "it waits for 60 s, unless its configuration says more",
			"1 MiB":         "it counts its tokens for minutes",
		},
		entry: func(t *testing.T, s target) (string, string) {
			entry := s.fill(t, documented(t, "Continue", "yaml"))
			if s.over == stdio {
				entry = "mcpServers:\n  - name: demo\n    command: " + quote(t, s.command[0]) + "\n    args: " + quote(t, s.command[1:]) + "\n"
			}
			return ".continue/config.yaml", "name: test\nversion: 0.0.1\nschema: v1\nmodels:\n  - name: scripted\n    provider: openai\n" +
				"    model: " + modelName + "\n    apiBase: MODEL/v1\n    apiKey: none\n    roles: [chat]\n    capabilities: [tool_use]\n" + entry
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
	if s.open {
		entry = credentials.ReplaceAllString(entry, "")
	}
	return strings.NewReplacer(`"URL"`, quote(t, s.url), "Bearer TOKEN", "Bearer "+token).Replace(entry)
}

// credentials is what an entry of the documentation has for the token, in JSON, TOML and YAML.
var credentials = regexp.MustCompile(`,"headers":\{"Authorization":"[^"]*"\}|(?m:^bearer_token_env_var.*\n)|(?m:^ *requestOptions:\n.*\n.*\n)`)

// quote returns JSON, which TOML and YAML understand too.
func quote(t *testing.T, value any) string {
	t.Helper()
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	ssetest.Must(t, enc.Encode(value))
	return strings.TrimSpace(out.String())
}

// furnish makes a directory the home of the agent, in which it finds its configuration. Its working
// directory is below it.
func (a agent) furnish(t *testing.T, home string, s target, model string) {
	t.Helper()
	for _, dir := range []string{"work", "tmp"} {
		ssetest.Must(t, os.MkdirAll(filepath.Join(home, dir), 0o755))
	}
	for _, f := range a.settings {
		write(t, filepath.Join(home, f.file), strings.ReplaceAll(f.content, "MODEL", model))
	}
	file, content := a.entry(t, s)
	write(t, filepath.Join(home, file), strings.ReplaceAll(content, "MODEL", model))
}

// run runs the agent to its end, in its home directory. It returns what the agent has printed, and whether it ended by
// itself within the time, whatever its exit code: what it did is what counts.
func (a agent) run(t *testing.T, home string, s target, m *model, limit time.Duration) (printed string, ended bool) {
	t.Helper()
	a.furnish(t, home, s, m.URL)
	command := make([]string, 0, len(a.program)+len(a.args))
	for _, file := range a.program {
		command = append(command, modules(t, file))
	}
	command = slices.Concat(command, a.args)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = filepath.Join(home, "work")
	cmd.Env = append([]string{
		"HOME=" + home, "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1", "TMPDIR=" + filepath.Join(home, "tmp"),
		"PATH=" + filepath.Dir(modules(t, "node/bin/node")) + ":" + os.Getenv("PATH"),
	}, a.env(m.URL)...)
	var out ssetest.Output
	cmd.Stdout, cmd.Stderr = &out, &out
	// The programs that the agent has started end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	ssetest.Must(t, cmd.Start())
	end := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may have ended
	guard := time.AfterFunc(limit, end)
	err := cmd.Wait()
	ended = guard.Stop()
	// A server that it has started notices that it is gone, and ends.
	await(3*time.Second, func() bool { return syscall.Kill(-cmd.Process.Pid, 0) != nil })
	end()
	return fmt.Sprintf("%s\nexit: %v", out.Tail(), err), ended
}
