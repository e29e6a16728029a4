// What to paste into each client. docs/clients.md says the same with more words.

/**
 * @typedef {object} Entry
 * @property {string} client
 * @property {string} where where it goes
 * @property {string} text
 * @property {string} [install] a link that installs it
 */

/**
 * @typedef {object} Target
 * @property {string} name of the server
 * @property {string} url
 * @property {boolean} token whether a client needs a token in its configuration
 * @property {boolean} [logsIn] whether a client that can log in at an issuer needs none
 * @property {boolean} streamable whether Streamable HTTP is served, and not HTTP+SSE alone
 */

/** @param {unknown} value */
const pretty = value => JSON.stringify(value, null, 2);

/** @param {string} text in UTF-8 */
function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/**
 * shell quotes a word for a shell of Unix.
 * @param {string} word
 */
export function shell(word) { return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll('\'', '\'\\\'\'')}'`; }

/** @param {string} text as TOML, YAML and Python take it too */
const quote = text => JSON.stringify(text);

/** The clients that get a token from an issuer by themselves. */
const logIn = new Set(['Claude Code', 'Cursor', 'VS Code', 'Gemini CLI', 'Qwen Code', 'Windsurf', 'opencode']);

/**
 * entries returns what to paste for each client.
 * @param {Target} target
 * @returns {Entry[]}
 */
export function entries(target) {
  const all = written({ ...target, token: false });
  if (!target.token) return all;
  return written(target).map((one, i) => target.logsIn && logIn.has(one.client) ? all[i] : one);
}

/**
 * @param {Target} target
 * @returns {Entry[]}
 */
function written({ name, url, token, streamable }) {
  const http = streamable ? 'http' : 'sse';
  const bearer = (/** @type {string} */ variable) => token ? { headers: { Authorization: `Bearer ${variable}` } } : {};
  const servers = (/** @type {Record<string, any>} */ entry) => pretty({ mcpServers: { [name]: entry } });
  const flag = token ? ' --header "Authorization: Bearer TOKEN"' : '';
  const code = { type: http, url, ...token && { headers: { Authorization: 'Bearer ${input:token}' } } };
  const inputs = [{ type: 'promptString', id: 'token', description: 'Token of the gateway', password: true }];
  const cursor = { url, ...bearer('${env:TOKEN}') };
  const args = ['stdio', '--url', url, ...token ? ['--header', 'Authorization: Bearer ${TOKEN}'] : []];
  const pythonHeaders = token ? ', headers={"Authorization": "Bearer TOKEN"}' : '';
  const [pythonModule, pythonClient, pythonStreams] = streamable
    ? ['streamable_http', 'streamablehttp_client', 'read, write, _'] : ['sse', 'sse_client', 'read, write'];
  const [scriptModule, scriptTransport] = streamable
    ? ['streamableHttp', 'StreamableHTTPClientTransport'] : ['sse', 'SSEClientTransport'];
  const curl = streamable
    ? `curl ${shell(url)}${token ? ' -H "Authorization: Bearer TOKEN"' : ''} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'`
    : `curl -N ${shell(url)}${token ? ' -H "Authorization: Bearer TOKEN"' : ''} -H 'Accept: text/event-stream'`;
  return [
    { client: 'Claude Code', where: 'a terminal', text: `claude mcp add --transport ${http} ${shell(name)} ${shell(url)}${flag}` },
    {
      client: 'Claude Desktop', where: 'claude_desktop_config.json, which takes programs only',
      text: servers({ command: '/PATH/TO/sse-server', args, ...token && { env: { TOKEN: 'TOKEN' } } }),
    },
    {
      client: 'Cursor', where: '.cursor/mcp.json', text: servers(cursor),
      install: `cursor://anysphere.cursor-deeplink/mcp/install?name=${encodeURIComponent(name)}&config=${encodeURIComponent(base64(JSON.stringify(cursor)))}`,
    },
    {
      client: 'VS Code', where: '.vscode/mcp.json', text: pretty({ ...token && { inputs }, servers: { [name]: code } }),
      install: `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, ...code, ...token && { inputs } }))}`,
    },
    { client: 'Trae', where: 'Settings, MCP, Manual configuration, or .trae/mcp.json', text: servers({ url, ...bearer('TOKEN') }) },
    {
      client: 'Codex', where: '~/.codex/config.toml',
      text: `[mcp_servers.${/^[\w-]+$/.test(name) ? name : quote(name)}]\nurl = ${quote(url)}${token ? '\nbearer_token_env_var = "TOKEN"' : ''}`,
    },
    {
      client: 'Gemini CLI', where: '~/.gemini/settings.json',
      text: servers({ url, ...bearer('${TOKEN}') }),
    },
    { client: 'Windsurf', where: '~/.codeium/windsurf/mcp_config.json', text: servers({ serverUrl: url, ...bearer('${env:TOKEN}') }) },
    {
      client: 'Cline', where: 'Configure MCP servers', text: servers({ ...streamable && { type: 'streamableHttp' }, url, ...bearer('TOKEN') }),
    },
    { client: 'Roo', where: '.roo/mcp.json', text: servers({ type: streamable ? 'streamable-http' : 'sse', url, ...bearer('TOKEN') }) },
    {
      client: 'opencode', where: 'opencode.json',
      text: pretty({ mcp: { [name]: { type: 'remote', url, ...bearer('{env:TOKEN}') } } }),
    },
    {
      client: 'Qwen Code', where: '~/.qwen/settings.json',
      text: servers({ [streamable ? 'httpUrl' : 'url']: url, ...bearer('${TOKEN}') }),
    },
    {
      client: 'Copilot CLI', where: '~/.copilot/mcp-config.json',
      text: servers({ type: http, url, ...bearer('${TOKEN}'), tools: ['*'] }),
    },
    {
      client: 'Continue', where: '~/.continue/config.yaml',
      text: `mcpServers:\n  - name: ${quote(name)}\n    type: ${streamable ? 'streamable-http' : 'sse'}\n    url: ${quote(url)}${token ? '\n    requestOptions:\n      headers:\n        Authorization: "Bearer TOKEN"' : ''}`,
    },
    {
      client: 'Inspector', where: 'a terminal',
      text: `npx -y @modelcontextprotocol/inspector@latest --cli ${shell(url)} --transport ${http} --method tools/list${flag}`,
    },
    { client: 'curl', where: 'a terminal', text: curl },
    {
      client: 'Python SDK', where: 'a program, with version 1 of the package mcp',
      text: `import asyncio
from mcp import ClientSession
from mcp.client.${pythonModule} import ${pythonClient}

async def main():
    async with ${pythonClient}(${quote(url)}${pythonHeaders}) as (${pythonStreams}):
        async with ClientSession(read, write) as session:
            await session.initialize()
            print(await session.list_tools())

asyncio.run(main())`,
    },
    {
      client: 'TypeScript SDK', where: 'a file that ends with .mjs',
      text: `import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ${scriptTransport} } from "@modelcontextprotocol/sdk/client/${scriptModule}.js";

const client = new Client({ name: "my-client", version: "1" });
await client.connect(new ${scriptTransport}(new URL(${quote(url)})${token ? ', {\n  requestInit: { headers: { Authorization: "Bearer TOKEN" } },\n}' : ''}));
console.log(await client.listTools());`,
    },
  ];
}

/**
 * asCurl returns a call as a command for a shell.
 * @param {string} url
 * @param {any} message
 * @param {boolean} token
 */
export function asCurl(url, message, token) {
  return `curl ${shell(url)} -H 'Content-Type: application/json'${token ? ' -H "Authorization: Bearer $TOKEN"' : ''} -d ${shell(JSON.stringify(message))}`;
}
