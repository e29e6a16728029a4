// An agent with the TypeScript SDK: starts docsearch mcp over stdio, and searches for all
// words at once. Prints the tools and the answers as JSON.
//
//   node search.mjs /path/to/docsearch FOLDER WORD…
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages are those of the gateway's tests, at e2e/clients of the repository.
const require = createRequire(new URL("../../../e2e/clients/package.json", import.meta.url));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");

const [command, folder, ...words] = process.argv.slice(2);
const client = new Client({ name: "agent", version: "1" });
await client.connect(
  new StdioClientTransport({ command, args: ["mcp", "--folder", folder, "--addr", "127.0.0.1:0"], env: process.env, stderr: "inherit" }),
);
const tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
const results = await Promise.all(
  words.map(async (query) => (await client.callTool({ name: "search", arguments: { query } })).structuredContent),
);
await client.close();
console.log(JSON.stringify({ tools, results }));
