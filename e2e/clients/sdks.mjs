// The two TypeScript SDKs under one shape. Each entry makes a client and an SSE
// transport, both untouched: what the SDK does, the tests see.

const info = { name: "sse-server-e2e", version: "0" };

const load = {
  sdk1: async () => ({
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/sse.js")),
  }),
  client2: () => import("@modelcontextprotocol/client"),
};

// clientOptions says what differs between the kinds of one SDK.
const kinds = {
  sdk1: { sdk: "sdk1", options: {} },
  client2: { sdk: "client2", options: {} },
  "client2-auto": { sdk: "client2", options: { versionNegotiation: { mode: "auto" } } },
};

export const names = Object.keys(kinds);

/**
 * open returns an unconnected client, its transport, and what was seen of its
 * HTTP: how many streams it opened, and the method of its first message.
 */
export async function open(kind, url) {
  const { sdk, options } = kinds[kind];
  const { Client, SSEClientTransport } = await load[sdk]();
  const seen = { streams: 0, opening: undefined };
  const transport = new SSEClientTransport(new URL(url), {
    // Looking on is all that this fetch adds.
    fetch: (target, init) => {
      if (init?.method === "POST") seen.opening ??= JSON.parse(init.body).method;
      else seen.streams++;
      return fetch(target, init);
    },
  });
  return { client: new Client(info, options), transport, seen };
}
