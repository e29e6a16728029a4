package clients

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/shellword"
)

var askForToken = json.RawMessage(
	`[{"type":"promptString","id":"token","description":"Token of the gateway","password":true}]`)

// either returns the first word for a server over Streamable HTTP, the second for one over HTTP+SSE alone.
func either(s Server, streamable, sse string) string {
	if s.SSE {
		return sse
	}
	return streamable
}

// under makes entries of the URL, under this name, and the header with the token.
func under(name string) func(Server, string) json.RawMessage {
	return func(s Server, token string) json.RawMessage {
		return object(name, s.URL, "headers", s.headers(token))
	}
}

// underHTTPURL makes entries of the URL under the name for its transport.
func underHTTPURL(s Server, token string) json.RawMessage {
	return under(either(s, "httpUrl", "url"))(s, token)
}

// typedAs makes entries that say the transport too: sse, or this word for Streamable HTTP.
func typedAs(streamable string) func(Server, string) json.RawMessage {
	return func(s Server, token string) json.RawMessage {
		return object("type", either(s, streamable, "sse"), "url", s.URL, "headers", s.headers(token))
	}
}

// withTools makes an entry that allows all tools.
func withTools(s Server, token string) json.RawMessage {
	return object("type", s.kind(), "url", s.URL, "headers", s.headers(token), "tools", []string{"*"})
}

// remote makes an entry that says that it is no program.
func remote(s Server, token string) json.RawMessage {
	return object("type", "remote", "url", s.URL, "headers", s.headers(token))
}

// started makes an entry that starts sse-server stdio.
func started(s Server, token string) json.RawMessage {
	program, args := cmp.Or(s.Program, programPlace), append(slices.Clone(s.ProgramArgs), "stdio", "--url", s.URL)
	if !s.Token {
		return object("command", program, "args", args)
	}
	return object("command", program, "args", append(args, "--header", "Authorization: Bearer "+token),
		"env", map[string]string{"TOKEN": inPlace.form})
}

// run makes an entry that starts the program of a server.
func run(s Server) json.RawMessage { return object("command", s.Program, "args", s.Args) }

// runTyped makes an entry that says that it is a program.
func runTyped(s Server) json.RawMessage {
	return object("type", "stdio", "command", s.Program, "args", s.Args)
}

// runWithTools makes an entry of a program that allows all its tools.
func runWithTools(s Server) json.RawMessage {
	return object("type", "local", "command", s.Program, "args", s.Args, "tools", []string{"*"})
}

// runLocal makes an entry whose command has the arguments.
func runLocal(s Server) json.RawMessage {
	return object("type", "local", "command", append([]string{s.Program}, s.Args...))
}

func inCursor(s Server, token string) Install {
	return Install{
		"cursor://anysphere.cursor-deeplink/mcp/install?name=" + s.Name + "&config=",
		string(under("url")(s, token)), true,
	}
}

// inTrae makes a link of the form at https://docs.trae.ai/ide/mcp-server-install-links (in Chinese also at
// https://www.volcengine.com/docs/86677/2137600): type is stdio or http, which is any server at a URL, and config
// the entry in Base64, encoded for a URL. A dialog shows the entry before it is added, and there it can be changed.
func inTrae(s Server, token string) Install {
	return Install{
		"trae://trae.ai-ide/mcp-import?type=http&name=" + s.Name + "&config=",
		string(under("url")(s, token)), true,
	}
}

func inVSCode(s Server, token string) Install {
	inputs := askForToken
	if !s.Token {
		inputs = nil
	}
	kind := object("name", s.Name, "type", s.kind(), "url", s.URL, "headers", s.headers(token), "inputs", inputs)
	return Install{Link: "vscode:mcp/install?", Config: string(kind)}
}

func ofClaudeCode(s Server) string {
	return "claude mcp add --scope user --transport " + s.kind() + " " + s.Name + " " + shellword.Quote(s.URL) +
		s.flag("--header")
}

func ofCurl(s Server) string {
	if s.SSE {
		return "curl -N " + shellword.Quote(s.URL) + s.flag("-H") + " -H 'Accept: text/event-stream'"
	}
	call := cmp.Or(s.Call, `"method":"tools/list"`)
	return "curl " + shellword.Quote(s.URL) + s.flag("-H") + " -H 'Content-Type: application/json' -d " +
		shellword.Quote(`{"jsonrpc":"2.0","id":1,`+call+`}`)
}

// ofInspector names @latest because without it npm takes, for an older Node.js, a version that lacks --header.
func ofInspector(s Server) string {
	return "npx -y @modelcontextprotocol/inspector@latest --cli " + shellword.Quote(s.URL) +
		" --transport " + s.kind() + " --method tools/list" + s.flag("--header")
}

// tables are the entries of Codex in TOML.
func tables(servers []Server) string {
	var all []string
	for _, s := range servers {
		text := "[mcp_servers." + s.Name + "]\nurl = " + jsonText(s.URL)
		if len(s.Args) > 0 {
			text = "[mcp_servers." + s.Name + "]\ncommand = " + jsonText(s.Program) + "\nargs = " + jsonText(s.Args)
		}
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
		text += "\n  - name: " + jsonText(s.Name) +
			"\n    type: " + either(s, "streamable-http", "sse") +
			"\n    url: " + jsonText(s.URL)
		if s.Token {
			text += "\n    requestOptions:\n      headers:\n        Authorization: \"Bearer TOKEN\""
		}
	}
	return text
}

// ofPython is a program for versions 1.24 to 1.29 and 2.x of the package mcp. They differ in the package of the
// HTTP client, which needs times that leave streams open, and in what they yield after the two streams.
func ofPython(s Server) string {
	module, client, options, imports, indent, opened := "streamable_http", "streamable_http_client", "", "", "", ""
	switch {
	case s.SSE && s.Token:
		module, client, options = "sse", "sse_client", `, headers={"Authorization": "Bearer TOKEN"}`
	case s.SSE:
		module, client = "sse", "sse_client"
	case s.Token:
		options, indent = ", http_client=http", "    "
		imports = `
try:
    import httpx2 as httpx  # comes with version 2 of mcp
except ImportError:
    import httpx  # comes with version 1
`
		opened = `
    headers = {"Authorization": "Bearer TOKEN"}
    async with httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(30, read=300)) as http:`
	}
	return fmt.Sprintf(`import asyncio
from mcp import ClientSession
from mcp.client.%s import %s
%s
async def main():%s
%[5]s    async with %[2]s(%[6]s%[7]s) as streams:
%[5]s        async with ClientSession(*streams[:2]) as session:
%[5]s            await session.initialize()
%[5]s            print(await session.list_tools())

asyncio.run(main())`, module, client, imports, opened, indent, jsonText(s.URL), options)
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
console.log(await client.listTools());
await client.close();`, transport, module, jsonText(s.URL), options)
}
