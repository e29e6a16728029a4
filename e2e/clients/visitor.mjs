// A client of the TypeScript SDK 2, of MCP 2026-07-28, before a server at which nobody is logged in. It calls a tool: if
// it is asked to have its user visit an address, it opens that or declines; it opens a link in the text of the answer
// too. Then it waits until it is told of the server's tools, and calls echo. It prints what it has seen as JSON.
//
//   node visitor.mjs URL TOOL [accept | decline]
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [, , url, tool, action] = process.argv;
const seen = { visits: 0 };

// visit opens an address as a browser does whose person agrees to all.
const visit = (address) => promisify(execFile)(process.execPath, ["follow.mjs", address]);

const { promise: changed, resolve } = Promise.withResolvers();
const names = (tools) => tools.map(({ name }) => name);
const client = new Client({ name: "visitor", version: "0" }, {
  versionNegotiation: { mode: "auto" },
  capabilities: action ? { elicitation: { url: {} } } : {},
  listChanged: {
    tools: { debounceMs: 0, onChanged: (_, tools) => names(tools ?? []).includes("echo") && resolve(names(tools)) },
  },
});
if (action)
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    seen.visits++;
    seen.mode = params.mode;
    if (action === "accept") await visit(params.url);
    return { action };
  });

async function call(name) {
  const result = await client.callTool({ name, arguments: { message: "hi" } });
  return { text: result.content.map((part) => part.text ?? "").join(""), isError: result.isError ?? false };
}

await client.connect(new StreamableHTTPClientTransport(new URL(url)));
seen.protocol = client.getNegotiatedProtocolVersion();
seen.subscribes = client.autoOpenedSubscription !== undefined;
seen.before = names((await client.listTools()).tools);
seen.first = await call(tool);
const link = /Log in at (\S+)/.exec(seen.first.text);
if (link) await visit(link[1]);
seen.changed = await changed;
seen.echo = await call("echo");
await client.close();
console.log(JSON.stringify(seen));
process.exit();
