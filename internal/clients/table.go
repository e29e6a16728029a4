package clients

import "time"

// Clients treat the tools whose names are too long in one of these ways.
const (
	dropsTools = "drops the tools"
	cutsNames  = "cuts the names"
)

// All are the clients that are known, by their names.
var All = []Client{
	{
		Name: "claude-code", Title: "Claude Code", Calls: []string{"claude-code"},
		Says:     []string{"Anthropic's agentic coding tool", "https://claude.com/claude-code"},
		Patience: 2 * time.Second, Longer: `"alwaysLoad":true in its entry, with which it waits for 5s`,
		Description: 2048, Front: "mcp__%s__",
		Keywords: []string{"anyOf", "oneOf", "allOf"},
		Schemas:  "makes one object of them; versions before fail at every request",
		Result:   25_000, ResultUnit: "tokens",
		LongResults: "puts it into a file; _meta of the tool can allow more: anthropic/maxResultSizeChars",
		Entry: &Entry{
			Where: "a terminal", LogsIn: true, Approves: true,
			Files: []string{".mcp.json"}, Others: []string{"~/.claude.json"}, Projects: "projects",
			Key: MostKey, token: asVariable("${TOKEN}"), member: typedAs("http"),
			program: runTyped, pasted: inPlace, text: lines(ofClaudeCode),
			Settings: []string{"~/.claude/settings.json", "~/.claude/settings.local.json", ".claude/settings.json",
				".claude/settings.local.json"},
		},
	},
	{
		Name: "claude-desktop", Title: "Claude Desktop",
		Entry: &Entry{
			Where: "claude_desktop_config.json, which takes programs only",
			Files: []string{
				"~/Library/Application Support/Claude/claude_desktop_config.json",
				"~/.config/Claude/claude_desktop_config.json",
				"~/AppData/Roaming/Claude/claude_desktop_config.json",
			},
			Key: MostKey, token: inItsEntry, member: started, starts: true,
		},
	},
	{
		Name: "cline", Title: "Cline", Calls: []string{"Cline", "@cline/core"}, Call: time.Minute, NameLength: 64,
		Entry: &Entry{
			Where: "the file that Configure MCP Servers opens",
			Files: []string{"~/.cline/data/settings/cline_mcp_settings.json"}, Key: MostKey, token: inPlace,
			member: typedAs("streamableHttp"), program: runTyped,
		},
	},
	{
		Name: "codex", Title: "Codex", Calls: []string{"codex-mcp-client"},
		Patience:   time.Second,
		Longer:     "mcp_optional_startup_grace_ms = 0 in config.toml, with which it waits for startup_timeout_sec",
		Call:       2 * time.Minute,
		NameLength: 64, Front: "mcp__%s__", LongNames: cutsNames,
		Keywords: []string{"anyOf", "oneOf", "allOf", "enum", "not"},
		Schemas:  "loses what stands beside them, or fails at every request",
		Entry: &Entry{
			Where: "~/.codex/config.toml", Files: []string{"~/.codex/config.toml"}, Key: CodexKey, Format: TOML,
			token: fromVariable, pasted: fromVariable, text: tables,
		},
	},
	{
		Name: "continue", Title: "Continue", Calls: []string{"continue-cli-client"},
		Entry: &Entry{
			Where: "~/.continue/config.yaml", Files: []string{"~/.continue/config.yaml"}, Key: MostKey, Format: YAML,
			token: inPlace, pasted: inPlace, text: ofContinue,
		},
	},
	{
		Name: "copilot-cli", Title: "Copilot CLI", Calls: []string{"copilot-cli", "github-copilot-developer"},
		Front: "%s-",
		Entry: &Entry{
			Where: "~/.copilot/mcp-config.json",
			Files: []string{"~/.copilot/mcp-config.json"}, Key: MostKey, token: asVariable("${TOKEN}"),
			member: withTools, program: runWithTools,
		},
	},
	{
		Name: "curl", Title: "curl",
		Entry: &Entry{
			Where: "a terminal",
			single: "A request of curl would need a session, " +
				"because the gateway does not initialize it (auto-initialize is off).",
			pasted: inPlace, text: lines(ofCurl),
		},
	},
	{
		Name: "cursor", Title: "Cursor", Calls: []string{"cursor-vscode"}, NameLength: 60, LongNames: dropsTools,
		Entry: &Entry{
			Where: ".cursor/mcp.json", LogsIn: true,
			Files: []string{".cursor/mcp.json", "~/.cursor/mcp.json"}, Key: MostKey,
			token: asVariable("${env:TOKEN}"), member: under("url"),
			install: inCursor,
		},
	},
	{
		Name: "gemini-cli", Title: "Gemini CLI", Calls: []string{"gemini-cli-mcp-client"},
		Call:       10 * time.Minute,
		NameLength: 63, Front: "mcp_%s_", LongNames: cutsNames,
		Result: 40_000, ResultUnit: "characters", LongResults: "puts it into a file",
		Entry: &Entry{
			Where: "~/.gemini/settings.json", LogsIn: true,
			Files: []string{"~/.gemini/settings.json"}, Key: MostKey,
			token: asVariable("${TOKEN}"), member: under("url"),
		},
	},
	{
		Name: "inspector", Title: "Inspector",
		Entry: &Entry{
			Where:  "a terminal",
			pasted: inPlace, text: lines(ofInspector),
		},
	},
	// Its versions from 0.11.0 to 2.0.1 at least end their session at an unknown event.
	{Name: "java-sdk", Title: "Java SDK", Calls: []string{"Java-http-client"}, Quiet: true},
	{Name: "kiro-cli", Title: "Kiro CLI", Patience: 30 * time.Second},
	{
		Name: "opencode", Title: "opencode", Calls: []string{"opencode"}, Patience: 30 * time.Second,
		Entry: &Entry{
			Where: "opencode.json", LogsIn: true,
			Files: []string{"opencode.json", "~/.config/opencode/opencode.json"}, Key: OpencodeKey,
			token: asVariable("{env:TOKEN}"), member: remote, program: runLocal,
		},
	},
	{Name: "pi", Title: "pi", Patience: 250 * time.Millisecond},
	{
		Name: "python-sdk", Title: "Python SDK",
		Entry: &Entry{
			Where:  "a program, with version 1.24 or later of the package mcp",
			pasted: inPlace, text: lines(ofPython),
		},
	},
	{
		Name: "qwen-code", Title: "Qwen Code", Calls: []string{"qwen-cli-mcp-client-demo"},
		Patience: 5 * time.Second, Call: 10 * time.Minute,
		NameLength: 63, Front: "mcp__%s__", LongNames: cutsNames,
		Result: 25_000, ResultUnit: "characters", LongResults: "puts it into a file",
		Entry: &Entry{
			Where: "~/.qwen/settings.json", LogsIn: true,
			Files: []string{"~/.qwen/settings.json"}, Key: MostKey, token: asVariable("${TOKEN}"),
			member: underHTTPURL,
		},
	},
	{
		Name: "roo", Title: "Roo", Calls: []string{"Roo Code", "Roo-Code"}, Call: time.Minute,
		NameLength: 64, Front: "mcp--%s--", LongNames: cutsNames,
		Entry: &Entry{
			Where: ".roo/mcp.json", Files: []string{".roo/mcp.json"}, Key: MostKey, token: inPlace,
			member: typedAs("streamable-http"), program: runTyped,
		},
	},
	{
		Name: "trae", Title: "Trae",
		Tools: 40, Descriptions: 8000, Over: "drops the rest silently",
		NameLength: 60, LongNames: dropsTools,
		Entry: &Entry{
			Where: "the window that Settings, MCP, Add, Add manually opens, or into .trae/mcp.json",
			Files: []string{".trae/mcp.json"}, Key: MostKey, token: inPlace, member: under("url"),
			install: inTrae,
		},
	},
	{
		Name: "typescript-sdk", Title: "TypeScript SDK", Call: time.Minute,
		Entry: &Entry{Where: "a file that ends with .mjs", pasted: inPlace, text: lines(ofTypeScript)},
	},
	{
		Name: "vs-code", Title: "VS Code", Calls: []string{"Visual Studio Code", "Visual-Studio-Code"},
		Tools: 128, Over: "takes no more for a request",
		Entry: &Entry{
			Where: ".vscode/mcp.json", LogsIn: true,
			Files: []string{".vscode/mcp.json"},
			Others: []string{
				"~/.config/Code/User/mcp.json",
				"~/Library/Application Support/Code/User/mcp.json",
				"~/AppData/Roaming/Code/User/mcp.json",
			},
			Key: VSCodeKey, token: askedFor, member: typedAs("http"), inputs: askForToken, program: runTyped,
			install: inVSCode,
		},
	},
	{
		Name: "windsurf", Title: "Windsurf",
		Entry: &Entry{
			Where: "~/.codeium/windsurf/mcp_config.json", LogsIn: true,
			Files: []string{"~/.codeium/windsurf/mcp_config.json"}, Key: MostKey,
			token: asVariable("${env:TOKEN}"), member: under("serverUrl"),
		},
	},
	{
		Name: "zed", Title: "Zed",
		Entry: &Entry{
			Where: "~/.config/zed/settings.json",
			Files: []string{"~/.config/zed/settings.json"}, Key: ZedKey, token: inPlace, member: under("url"),
		},
	},
}
