// The two TypeScript SDKs under one shape, and the clients of agents.mjs. Each entry makes a
// client and a transport, both untouched: what the SDK does, the tests see.
import * as agents from "./agents.mjs";

const info = { name: "sse-server-e2e", version: "0" };

const load = {
  sdk1: async () => ({
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/sse.js")),
    ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
    ...(await import("@modelcontextprotocol/sdk/client/stdio.js")),
  }),
  client2: async () => ({
    ...(await import("@modelcontextprotocol/client")),
    ...(await import("@modelcontextprotocol/client/stdio")),
  }),
};

// clientOptions says what differs between the kinds of one SDK.
const kinds = {
  sdk1: { sdk: "sdk1", options: {} },
  client2: { sdk: "client2", options: {} },
  "client2-auto": { sdk: "client2", options: { versionNegotiation: { mode: "auto" } } },
};

export const names = [...Object.keys(kinds), ...agents.names];

// What a client that answers says to each request of a server.
const answers = {
  "sampling/createMessage": (name) => ({ role: "assistant", model: "none", content: { type: "text", text: name } }),
  "elicitation/create": (name) => ({ action: "accept", content: { name } }),
  "roots/list": (name) => ({ roots: [{ uri: `file:///${name}`, name }] }),
};
const answering = { sampling: {}, elicitation: {}, roots: { listChanged: true } };

// answer makes a client of either SDK answer with the name.
async function answer(sdk, client, name) {
  const types = sdk === "sdk1" && (await import("@modelcontextprotocol/sdk/types.js"));
  const schemas = types && {
    "sampling/createMessage": types.CreateMessageRequestSchema,
    "elicitation/create": types.ElicitRequestSchema,
    "roots/list": types.ListRootsRequestSchema,
  };
  for (const [method, result] of Object.entries(answers))
    client.setRequestHandler(schemas ? schemas[method] : method, () => result(name));
}

// stdio returns a transport to the program whose command line, as JSON, is in the URL.
function stdio(StdioClientTransport, url) {
  const [command, ...args] = JSON.parse(url.slice("stdio:".length));
  return new StdioClientTransport({ command, args, stderr: "inherit", env: process.env });
}

// methodOf returns the method of a message; undefined for what else the SDKs POST.
const methodOf = (body) => (typeof body === "string" && body.startsWith("{") ? JSON.parse(body).method : undefined);

/**
 * open returns an unconnected client, its transport, and what was seen of its
 * HTTP: how many streams it opened, and the method of its first message. The transport
 * is "sse" or "streamable". With a name the client declares all that a server may ask
 * of it, and answers with the name. The options are for the transport of an SDK.
 */
export async function open(kind, url, over, name, transportOptions) {
  const seen = { streams: 0, opening: undefined };
  // Looking on is all that this fetch adds.
  const watched = (target, init) => {
    if (init?.method === "POST") seen.opening ??= methodOf(init.body);
    else if (init?.method !== "DELETE") seen.streams++;
    return fetch(target, init);
  };
  if (agents.names.includes(kind)) return { ...(await agents.open(kind, url, watched)), seen };
  const { sdk, options } = kinds[kind];
  const { Client, StdioClientTransport, ...loaded } = await load[sdk]();
  const HTTPTransport = over === "sse" ? loaded.SSEClientTransport : loaded.StreamableHTTPClientTransport;
  const transport = url.startsWith("stdio:") ? stdio(StdioClientTransport, url) : new HTTPTransport(new URL(url), { fetch: watched, ...transportOptions });
  const client = new Client(info, { ...options, ...(name && { capabilities: answering }) });
  if (name) await answer(sdk, client, name);
  return { client, transport, seen };
}
