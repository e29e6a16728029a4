// The user of an OAuth flow: a provider for the transports of both TypeScript SDKs, that
// follows the authorization as a browser would. The SDK does all the rest.
const redirect = "http://127.0.0.1:9/callback";

// authorize returns the parameters with which the issuer sends the browser back.
async function authorize(url) {
  const cookies = new Map();
  for (;;) {
    const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      cookies.set(name, value);
    }
    const location = response.headers.get("location");
    if (!location) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
    url = new URL(location, url);
    if (url.href.startsWith(redirect)) return url.searchParams;
  }
}

export function user() {
  const saved = {};
  return {
    get redirectUrl() {
      return redirect;
    },
    clientMetadata: {
      client_name: "e2e",
      redirect_uris: [redirect],
      application_type: "native",
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
    },
    clientInformation: () => saved.client,
    saveClientInformation: (client) => void (saved.client = client),
    tokens: () => saved.tokens,
    saveTokens: (tokens) => void (saved.tokens = tokens),
    saveCodeVerifier: (verifier) => void (saved.verifier = verifier),
    codeVerifier: () => saved.verifier,
    saveDiscoveryState: (state) => void (saved.discovery = state),
    discoveryState: () => saved.discovery,
    async redirectToAuthorization(url) {
      this.answer = await authorize(url);
    },
  };
}
