// The MCP clients of agent frameworks, which list and call tools over Streamable HTTP,
// under the shape of the SDKs' clients: connect, listTools, callTool, close.

const aiSDK = (protocolVersionDiscovery) => async (url, fetch) => {
  const { createMCPClient } = await import("@ai-sdk/mcp");
  let client;
  return {
    connect: async () => (client = await createMCPClient({ transport: { type: "http", url, fetch }, protocolVersionDiscovery })),
    getServerVersion: () => client.serverInfo,
    listTools: () => client.listTools(),
    callTool: ({ name, arguments: args }, { timeout }) => client.callTool({ name, arguments: args, options: { timeout } }),
    close: () => client.close(),
  };
};

const kinds = {
  "ai-sdk": aiSDK(true),
  "ai-sdk-initialize": aiSDK(false),
  "openai-agents": async (url, fetch) => {
    const { MCPServerStreamableHttp } = await import("@openai/agents-core");
    const server = new MCPServerStreamableHttp({ url, fetch, clientSessionTimeoutSeconds: 60 }); // not its 5 s: the machine may be busy
    return {
      connect: () => server.connect(),
      getServerVersion: () => undefined,
      listTools: async () => ({ tools: await server.listTools() }),
      callTool: async ({ name, arguments: args }) => server.callToolResult(name, args),
      close: () => server.close(),
    };
  },
};

export const names = Object.keys(kinds);

/** open returns an unconnected client as sdks.mjs does; its transport shows nothing. */
export async function open(kind, url, fetch) {
  return { client: await kinds[kind](url, fetch), transport: {} };
}
