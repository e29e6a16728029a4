// An OAuth issuer for tests: oidc-provider with resource indicators, dynamic registration,
// introspection and revocation, in which alice is logged in and consents to all. It prints its
// URL, and on stderr each code, device code, verifier and token that passes. Tokens for a resource whose path begins
// with /opaque are opaque, others are JWTs. With "device" it has the device flow too, and with "rotates" it takes each
// refresh token once, whoever has it. With "documents=URL" it registers no clients, and takes client id metadata
// documents, all of which it reads from the gateway at that URL, whatever their host.
//
//   node provider.mjs [device] [rotates] [documents=URL]
import { createServer } from "node:http";
import { Provider } from "oidc-provider";

const server = createServer();
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const issuer = `http://127.0.0.1:${server.address().port}`;

const [, gateway] = process.argv.find((one) => one.startsWith("documents="))?.split("=") ?? [];

const provider = new Provider(issuer, {
  clients: [{ client_id: "gateway", client_secret: "secret", redirect_uris: [], grant_types: [], response_types: [] }, {
    client_id: "page", application_type: "native", token_endpoint_auth_method: "none", grant_types: ["authorization_code"],
    response_types: ["code"],
    redirect_uris: ["http://127.0.0.1/jwt/mcp", "https://gw.example.com/login/notes/principal"], // loopback with any port
  }],
  clientBasedCORS: (_, __, client) => client.clientId === "page",
  cookies: { keys: ["e2e"] },
  scopes: ["openid", "offline_access", "mcp", "admin"],
  pkce: { required: () => true },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  issueRefreshToken: () => true,
  ...(gateway && { fetch: (url, { method, headers, redirect }) => {
    const { pathname } = new URL(url);
    return fetch(`${gateway}${pathname}`, { method, headers, redirect });
  } }),
  ...(process.argv.includes("rotates") && { rotateRefreshToken: true }),
  features: {
    devInteractions: { enabled: false },
    deviceFlow: { enabled: process.argv.includes("device") },
    registration: { enabled: !gateway },
    ...(gateway && { clientIdMetadataDocument: { enabled: true, ack: "draft-02" } }),
    revocation: { enabled: true, allowedPolicy: () => true },
    introspection: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      defaultResource: (_, __, oneOf) => oneOf?.[0],
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: "mcp admin",
        audience: resource,
        accessTokenTTL: 300,
        accessTokenFormat: new URL(resource).pathname.startsWith("/opaque") ? "opaque" : "jwt",
      }),
    },
  },
});

// consent gives a client all that it asks for.
async function consent({ params, session }) {
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope ?? "");
  for (const resource of [params.resource].flat().filter(Boolean)) grant.addResourceScope(resource, params.scope ?? "");
  return { consent: { grantId: await grant.save() } };
}

const answer = provider.callback();
server.on("request", async (req, res) => {
  if (!req.url.startsWith("/interaction/")) return answer(req, res);
  const details = await provider.interactionDetails(req, res);
  const result = details.prompt.name === "login" ? { login: { accountId: "alice" } } : await consent(details);
  await provider.interactionFinished(req, res, result, { mergeWithLastSubmission: true });
});
provider.on("grant.success", ({ oidc: { params }, body }) => {
  const given = [body.access_token, body.refresh_token, body.id_token];
  for (const one of [params.code, params.code_verifier, params.device_code, params.refresh_token, ...given]) {
    if (one) console.error(`secret ${one}`);
  }
});
provider.on("server_error", (_, err) => console.error(err));
console.log(issuer);
