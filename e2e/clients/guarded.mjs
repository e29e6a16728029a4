// An MCP server of the TypeScript SDK behind its own OAuth: the SDK's router of metadata and its check of bearer tokens,
// which are those of provider.mjs. Its first line on stdout is its URL.
//
//   node guarded.mjs ISSUER
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } from "@modelcontextprotocol/sdk/server/auth/router.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import express from "express";
import { z } from "zod";

const [, , issuer] = process.argv;
const app = express();
const http = createServer(app);
await new Promise((done) => http.listen(0, "127.0.0.1", done));
const resource = new URL(`http://127.0.0.1:${http.address().port}/opaque/mcp`); // tokens that the issuer can end
const oauthMetadata = await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();
app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: resource, scopesSupported: ["mcp"] }));

// verifyAccessToken asks the issuer about a token.
async function verifyAccessToken(token) {
  const answer = await fetch(oauthMetadata.introspection_endpoint, {
    method: "POST",
    headers: { authorization: `Basic ${btoa("gateway:secret")}` },
    body: new URLSearchParams({ token }),
  });
  const found = await answer.json();
  if (!found.active) throw new InvalidTokenError("the token is not active");
  return { token, clientId: found.client_id, scopes: found.scope.split(" "), expiresAt: found.exp, resource: new URL(found.aud) };
}

app.use(resource.pathname, requireBearerAuth({
  verifier: { verifyAccessToken },
  requiredScopes: ["mcp"],
  resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
  expectedResource: resource,
}));

const sessions = new Map();
app.all(resource.pathname, async (req, res) => {
  let transport = sessions.get(req.headers["mcp-session-id"]);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    const server = new McpServer({ name: "guarded", version: "1" });
    server.registerTool("echo", { inputSchema: { message: z.string() } }, ({ message }) => ({
      content: [{ type: "text", text: message }],
    }));
    await server.connect(transport);
  }
  await transport.handleRequest(req, res);
});
console.log(resource.href);
