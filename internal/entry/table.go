package entry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// All are the clients, by name.
var All = []Client{
	{
		Name: "claude-code", Title: "Claude Code", Where: "a terminal", LogsIn: true,
		Files: []string{".mcp.json"}, Key: "mcpServers", token: asVariable("${TOKEN}"), entry: typed,
		pasted: inPlace, text: lines(func(s Server) string {
			return "claude mcp add --transport " + s.kind() + " " + s.Name + " " + shell(s.URL) + s.flag("--header")
		}),
	},
	{
		Name: "claude-desktop", Title: "Claude Desktop", Where: "claude_desktop_config.json, which takes programs only",
		Files: []string{"~/Library/Application Support/Claude/claude_desktop_config.json", "~/.config/Claude/claude_desktop_config.json", "~/AppData/Roaming/Claude/claude_desktop_config.json"},
		Key:   "mcpServers", token: inItsEntry, entry: started, starts: true,
	},
	{
		Name: "cline", Title: "Cline", Where: "Configure MCP servers",
		Files: []string{"~/.cline/data/settings/cline_mcp_settings.json"}, Key: "mcpServers", token: inPlace,
		entry: func(s Server, token string) json.RawMessage {
			return object("type", either(s, "streamableHttp", "sse"), "url", s.URL, "headers", s.headers(token))
		},
	},
	{Name: "codex", Title: "Codex", Where: "~/.codex/config.toml", Files: []string{"~/.codex/config.toml"}, Key: "mcp_servers", token: fromVariable, pasted: fromVariable, text: tables},
	{Name: "continue", Title: "Continue", Where: "~/.continue/config.yaml", pasted: inPlace, text: ofContinue},
	{
		Name: "copilot-cli", Title: "Copilot CLI", Where: "~/.copilot/mcp-config.json",
		Files: []string{"~/.copilot/mcp-config.json"}, Key: "mcpServers", token: asVariable("${TOKEN}"),
		entry: func(s Server, token string) json.RawMessage {
			return object("type", s.kind(), "url", s.URL, "headers", s.headers(token), "tools", []string{"*"})
		},
	},
	{
		Name: "curl", Title: "curl", Where: "a terminal", single: true,
		pasted: inPlace, text: lines(func(s Server) string {
			if s.SSE {
				return "curl -N " + shell(s.URL) + s.flag("-H") + " -H 'Accept: text/event-stream'"
			}
			call := s.Call
			if call == "" {
				call = `"method":"tools/list"`
			}
			return "curl " + shell(s.URL) + s.flag("-H") + " -H 'Content-Type: application/json' -d " + shell(`{"jsonrpc":"2.0","id":1,`+call+`}`)
		}),
	},
	{
		Name: "cursor", Title: "Cursor", Where: ".cursor/mcp.json", LogsIn: true,
		Files: []string{".cursor/mcp.json", "~/.cursor/mcp.json"}, Key: "mcpServers", token: asVariable("${env:TOKEN}"), entry: plain("url"),
		install: func(s Server, token string) Install {
			return Install{"cursor://anysphere.cursor-deeplink/mcp/install?name=" + s.Name + "&config=", string(plain("url")(s, token)), true}
		},
	},
	{
		Name: "gemini-cli", Title: "Gemini CLI", Where: "~/.gemini/settings.json", LogsIn: true,
		Files: []string{"~/.gemini/settings.json"}, Key: "mcpServers", token: asVariable("${TOKEN}"), entry: plain("url"),
	},
	{
		Name: "inspector", Title: "Inspector", Where: "a terminal",
		pasted: inPlace, text: lines(func(s Server) string { // without @latest npm takes, for an older Node.js, a version that lacks --header
			return "npx -y @modelcontextprotocol/inspector@latest --cli " + shell(s.URL) + " --transport " + s.kind() + " --method tools/list" + s.flag("--header")
		}),
	},
	{
		Name: "opencode", Title: "opencode", Where: "opencode.json", LogsIn: true,
		Files: []string{"opencode.json", "~/.config/opencode/opencode.json"}, Key: "mcp", token: asVariable("{env:TOKEN}"),
		entry: func(s Server, token string) json.RawMessage {
			return object("type", "remote", "url", s.URL, "headers", s.headers(token))
		},
	},
	{Name: "python-sdk", Title: "Python SDK", Where: "a program, with version 1 of the package mcp", pasted: inPlace, text: lines(ofPython)},
	{
		Name: "qwen-code", Title: "Qwen Code", Where: "~/.qwen/settings.json", LogsIn: true,
		Files: []string{"~/.qwen/settings.json"}, Key: "mcpServers", token: asVariable("${TOKEN}"),
		entry: func(s Server, token string) json.RawMessage { return plain(either(s, "httpUrl", "url"))(s, token) },
	},
	{
		Name: "roo", Title: "Roo", Where: ".roo/mcp.json", Files: []string{".roo/mcp.json"}, Key: "mcpServers", token: inPlace,
		entry: func(s Server, token string) json.RawMessage {
			return object("type", either(s, "streamable-http", "sse"), "url", s.URL, "headers", s.headers(token))
		},
	},
	{
		Name: "trae", Title: "Trae", Where: "Settings, MCP, Manual configuration, or .trae/mcp.json",
		Files: []string{".trae/mcp.json"}, Key: "mcpServers", token: inPlace, entry: plain("url"),
	},
	{Name: "typescript-sdk", Title: "TypeScript SDK", Where: "a file that ends with .mjs", pasted: inPlace, text: lines(ofTypeScript)},
	{
		Name: "vs-code", Title: "VS Code", Where: ".vscode/mcp.json", LogsIn: true,
		Files: []string{".vscode/mcp.json"}, Key: "servers", token: askedFor, entry: typed, inputs: askForToken,
		install: func(s Server, token string) Install {
			inputs := askForToken
			if !s.Token {
				inputs = nil
			}
			kind := object("name", s.Name, "type", s.kind(), "url", s.URL, "headers", s.headers(token), "inputs", inputs)
			return Install{Link: "vscode:mcp/install?", Config: string(kind)}
		},
	},
	{
		Name: "windsurf", Title: "Windsurf", Where: "~/.codeium/windsurf/mcp_config.json", LogsIn: true,
		Files: []string{"~/.codeium/windsurf/mcp_config.json"}, Key: "mcpServers", token: asVariable("${env:TOKEN}"), entry: plain("serverUrl"),
	},
	{
		Name: "zed", Title: "Zed", Where: "~/.config/zed/settings.json",
		Files: []string{"~/.config/zed/settings.json"}, Key: "context_servers", token: inPlace, entry: plain("url"),
	},
}

var askForToken = json.RawMessage(`[{"type":"promptString","id":"token","description":"Token of the gateway","password":true}]`)

// either returns the first word for a server over Streamable HTTP, the second for one over HTTP+SSE alone.
func either(s Server, streamable, sse string) string {
	if s.SSE {
		return sse
	}
	return streamable
}

// plain makes entries of the URL, under this name, and the header with the token.
func plain(name string) func(Server, string) json.RawMessage {
	return func(s Server, token string) json.RawMessage {
		return object(name, s.URL, "headers", s.headers(token))
	}
}

// typed makes an entry that says the transport too.
func typed(s Server, token string) json.RawMessage {
	return object("type", s.kind(), "url", s.URL, "headers", s.headers(token))
}

// started makes an entry that starts sse-server stdio.
func started(s Server, token string) json.RawMessage {
	program, args := cmp.Or(s.Program, programPlace), []string{"stdio", "--url", s.URL}
	if !s.Token {
		return object("command", program, "args", args)
	}
	return object("command", program, "args", append(args, "--header", "Authorization: Bearer "+token), "env", map[string]string{"TOKEN": inPlace.form})
}

// tables are the entries of Codex in TOML.
func tables(servers []Server) string {
	var all []string
	for _, s := range servers {
		text := "[mcp_servers." + s.Name + "]\nurl = " + encode(s.URL)
		if s.Token {
			text += "\nbearer_token_env_var = \"TOKEN\""
		}
		all = append(all, text)
	}
	return strings.Join(all, "\n\n")
}

// ofContinue are the entries of Continue in YAML.
func ofContinue(servers []Server) string {
	text := "mcpServers:"
	for _, s := range servers {
		text += "\n  - name: " + encode(s.Name) + "\n    type: " + either(s, "streamable-http", "sse") + "\n    url: " + encode(s.URL)
		if s.Token {
			text += "\n    requestOptions:\n      headers:\n        Authorization: \"Bearer TOKEN\""
		}
	}
	return text
}

func ofPython(s Server) string {
	module, client, streams, headers := "streamable_http", "streamablehttp_client", "read, write, _", ""
	if s.SSE {
		module, client, streams = "sse", "sse_client", "read, write"
	}
	if s.Token {
		headers = `, headers={"Authorization": "Bearer TOKEN"}`
	}
	return fmt.Sprintf(`import asyncio
from mcp import ClientSession
from mcp.client.%s import %s

async def main():
    async with %[2]s(%s%s) as (%s):
        async with ClientSession(read, write) as session:
            await session.initialize()
            print(await session.list_tools())

asyncio.run(main())`, module, client, encode(s.URL), headers, streams)
}

func ofTypeScript(s Server) string {
	module, transport, options := "streamableHttp", "StreamableHTTPClientTransport", ""
	if s.SSE {
		module, transport = "sse", "SSEClientTransport"
	}
	if s.Token {
		options = ", {\n  requestInit: { headers: { Authorization: \"Bearer TOKEN\" } }, // of the GET and each POST\n}"
	}
	return fmt.Sprintf(`import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { %s } from "@modelcontextprotocol/sdk/client/%s.js";

const client = new Client({ name: "my-client", version: "1" });
await client.connect(new %[1]s(new URL(%[3]s)%s));
console.log(await client.listTools());`, transport, module, encode(s.URL), options)
}
