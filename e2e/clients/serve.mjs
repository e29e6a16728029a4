// A real TypeScript MCP server over HTTP, with the tools, resource and prompt of
// ../everything. Its first line on stdout is its URL.
//
//   node serve.mjs --kind sdk1-streamable|sdk1-sse|server2-stateless [--port 0]
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { z } from "zod";

const { values: flags } = parseArgs({
  options: { kind: { type: "string" }, port: { type: "string", default: "0" } },
});
const info = { name: `everything-${flags.kind}`, version: "1" };
const greeting = "test://greeting";
const text = (value) => ({ content: [{ type: "text", text: String(value) }] });

// What a tool asks of the client, and how it reads the answer.
const form = { type: "object", required: ["name"], properties: { name: { type: "string" } } };
const questions = {
  sampling: {
    method: "sampling/createMessage",
    params: { maxTokens: 10, messages: [{ role: "user", content: { type: "text", text: "who are you?" } }] },
    read: (result) => [result.content].flat()[0].text,
  },
  elicitation: {
    method: "elicitation/create",
    params: { mode: "form", message: "who are you?", requestedSchema: form },
    read: (result) => (result.action === "accept" ? result.content.name : result.action),
  },
  roots: { method: "roots/list", params: {}, read: (result) => result.roots.map((root) => root.uri).join(" ") },
};

// register adds what both SDKs add in the same way. notify sends a notification
// on the stream of the request that the handler's context belongs to.
function register(server, notify) {
  const tool = (name, shape, handler, annotations = {}) =>
    server.registerTool(name, { inputSchema: z.object(shape), annotations }, handler);
  tool("echo", { message: z.string() }, ({ message }) => text(message), { readOnlyHint: true });
  tool("add", { a: z.number(), b: z.number() }, ({ a, b }) => text(a + b), { readOnlyHint: true });
  tool("slow", { ms: z.number() }, async ({ ms }) => (await delay(ms), text("slow")));
  tool("crash", {}, () => process.exit(3));
  tool("log", { level: z.string(), message: z.string() }, async ({ level, message }, context) => {
    await notify(context, { method: "notifications/message", params: { level, logger: "everything", data: message } });
    return text("logged");
  });
  tool("progress", { steps: z.number() }, async ({ steps }, context) => {
    const progressToken = (context._meta ?? context.mcpReq?._meta)?.progressToken;
    for (let progress = 1; progress <= steps && progressToken !== undefined; progress++)
      await notify(context, { method: "notifications/progress", params: { progressToken, progress, total: steps } });
    return text(`${steps} steps`);
  });
  server.registerResource("greeting", greeting, { mimeType: "text/plain" }, () => ({
    contents: [{ uri: greeting, mimeType: "text/plain", text: "hello" }],
  }));
  server.registerPrompt("greet", { argsSchema: promptArguments() }, ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Greet ${name}` } }],
  }));
}
// SDK 1 takes a raw shape, SDK 2 a schema.
const promptArguments = () => (flags.kind.startsWith("sdk1") ? { name: z.string() } : z.object({ name: z.string() }));

async function sdk1Server() {
  const { McpServer } = await import("@modelcontextprotocol/sdk/server/mcp.js");
  const { ResultSchema } = await import("@modelcontextprotocol/sdk/types.js");
  const server = new McpServer(info, { capabilities: { logging: {} } });
  register(server, (extra, notification) => extra.sendNotification(notification));
  for (const [name, { method, params, read }] of Object.entries(questions))
    server.registerTool(name, {}, async (extra) => text(read(await extra.sendRequest({ method, params }, ResultSchema))));
  return server;
}

// sdk1Streamable keeps a session for each client, as server-everything does, but
// without an event store: nothing can be resumed.
async function sdk1Streamable() {
  const { StreamableHTTPServerTransport } = await import("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const sessions = new Map();
  return async (req, res) => {
    const id = req.headers["mcp-session-id"];
    if (id && !sessions.has(id)) {
      const error = { code: -32001, message: "Session not found" };
      return res.writeHead(404, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id: null, error }));
    }
    if (id) return sessions.get(id).handleRequest(req, res);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (opened) => sessions.set(opened, transport),
      onsessionclosed: (closed) => sessions.delete(closed),
    });
    await (await sdk1Server()).connect(transport);
    return transport.handleRequest(req, res);
  };
}

async function sdk1SSE() {
  const { SSEServerTransport } = await import("@modelcontextprotocol/sdk/server/sse.js");
  const sessions = new Map();
  return async (req, res) => {
    const url = new URL(req.url, "http://server");
    if (req.method === "GET" && url.pathname === "/sse") {
      const transport = new SSEServerTransport("/messages", res);
      sessions.set(transport.sessionId, transport);
      res.on("close", () => sessions.delete(transport.sessionId));
      return (await sdk1Server()).connect(transport);
    }
    const transport = req.method === "POST" && sessions.get(url.searchParams.get("sessionId"));
    return transport ? transport.handlePostMessage(req, res) : res.writeHead(404).end("no such session");
  };
}

// server2Stateless speaks 2026-07-28 alone: what older clients send is refused.
async function server2Stateless() {
  const { McpServer, createMcpHandler, inputRequired } = await import("@modelcontextprotocol/server");
  const { toNodeHandler } = await import("@modelcontextprotocol/node");
  const build = { sampling: inputRequired.createMessage, elicitation: inputRequired.elicit, roots: inputRequired.listRoots };
  const handler = createMcpHandler(
    () => {
      const server = new McpServer(info, { capabilities: { logging: {} } });
      register(server, (context, notification) => context.mcpReq.notify(notification));
      for (const [name, { params, read }] of Object.entries(questions))
        server.registerTool(name, { inputSchema: z.object({}) }, (_, context) => {
          const answer = context.mcpReq.inputResponses?.answer;
          return answer ? text(read(answer)) : inputRequired({ inputRequests: { answer: build[name](params) }, requestState: "asked" });
        });
      // touch tells those who listen, who may be other requests.
      server.registerTool("touch", { inputSchema: z.object({ uri: z.string() }) }, ({ uri }) => {
        handler.notify.resourceUpdated(uri);
        return text("touched");
      });
      return server;
    },
    { legacy: "reject", onerror: (error) => console.error(error.message) },
  );
  return toNodeHandler(handler);
}

const kinds = {
  "sdk1-streamable": [sdk1Streamable, "/mcp"],
  "sdk1-sse": [sdk1SSE, "/sse"],
  "server2-stateless": [server2Stateless, "/mcp"],
};
if (!kinds[flags.kind]) {
  console.error(`usage: serve.mjs --kind ${Object.keys(kinds).join("|")}`);
  process.exit(2);
}
const [make, path] = kinds[flags.kind];
const handle = await make();
const http = createServer((req, res) =>
  Promise.resolve(handle(req, res)).catch((error) => {
    console.error(error);
    if (!res.headersSent) res.writeHead(500).end();
  }),
);
http.listen(Number(flags.port), "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}${path}`));
