package clients

import "time"

// What clients do with the tools whose names are too long.
const (
	dropsTools = "drops the tools"
	cutsNames  = "cuts the names"
)

// All are the clients that are known, by their names.
var All = []Client{
	{
		Name: "claude-code", Title: "Claude Code", Calls: []string{"claude-code"},
		Patience: 2 * time.Second, Longer: `"alwaysLoad":true in its entry, with which it waits for 5s`,
		Description: 2048, Front: "mcp__%s__",
		Keywords: []string{"anyOf", "oneOf", "allOf"},
		Schemas:  "makes one object of them; versions before fail at every request",
		Result:   25_000, ResultUnit: "tokens", LongResults: "puts it into a file; _meta of the tool can allow more: anthropic/maxResultSizeChars",
	},
	{Name: "cline", Title: "Cline", Calls: []string{"Cline", "@cline/core"}, Call: time.Minute, NameLength: 64},
	{
		Name: "codex", Title: "Codex", Calls: []string{"codex-mcp-client"},
		Patience: time.Second, Longer: "mcp_optional_startup_grace_ms = 0 in config.toml, with which it waits for startup_timeout_sec",
		Call:       2 * time.Minute,
		NameLength: 64, Front: "mcp__%s__", LongNames: cutsNames,
		Keywords: []string{"anyOf", "oneOf", "allOf", "enum", "not"},
		Schemas:  "loses what stands beside them, or fails at every request",
	},
	{Name: "continue", Title: "Continue", Calls: []string{"continue-cli-client"}},
	{Name: "copilot-cli", Title: "Copilot CLI", Calls: []string{"copilot-cli", "github-copilot-developer"}, Front: "%s-"},
	{Name: "cursor", Title: "Cursor", Calls: []string{"cursor-vscode"}, NameLength: 60, LongNames: dropsTools},
	{
		Name: "gemini-cli", Title: "Gemini CLI", Calls: []string{"gemini-cli-mcp-client"},
		Call:       10 * time.Minute,
		NameLength: 63, Front: "mcp_%s_", LongNames: cutsNames,
		Result: 40_000, ResultUnit: "characters", LongResults: "puts it into a file",
	},
	// Its versions from 0.11.0 to 2.0.1 at least end their session at an unknown event.
	{Name: "java-sdk", Title: "Java SDK", Calls: []string{"Java-http-client"}, Quiet: true},
	{Name: "kiro-cli", Title: "Kiro CLI", Patience: 30 * time.Second},
	{Name: "opencode", Title: "opencode", Calls: []string{"opencode"}, Patience: 30 * time.Second},
	{Name: "pi", Title: "pi", Patience: 250 * time.Millisecond},
	{
		Name: "qwen-code", Title: "Qwen Code", Calls: []string{"qwen-cli-mcp-client-demo"},
		Patience: 5 * time.Second, Call: 10 * time.Minute,
		NameLength: 63, Front: "mcp__%s__", LongNames: cutsNames,
		Result: 25_000, ResultUnit: "characters", LongResults: "puts it into a file",
	},
	{
		Name: "roo", Title: "Roo", Calls: []string{"Roo Code", "Roo-Code"}, Call: time.Minute,
		NameLength: 64, Front: "mcp--%s--", LongNames: cutsNames,
	},
	{
		Name: "trae", Title: "Trae",
		Tools: 40, Descriptions: 8000, Over: "drops the rest silently",
		NameLength: 60, LongNames: dropsTools,
	},
	{Name: "typescript-sdk", Title: "TypeScript SDK", Call: time.Minute},
	{
		Name: "vs-code", Title: "VS Code", Calls: []string{"Visual Studio Code", "Visual-Studio-Code"},
		Tools: 128, Over: "takes no more for a request",
	},
}
