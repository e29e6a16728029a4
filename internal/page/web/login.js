// The login at the issuer (OAuth 2.1): a code, and PKCE, as a public client. What belongs to a login that
// has begun is in the tab alone.

/**
 * @typedef {object} Login
 * @property {string} issuer
 * @property {string} clientID of the page
 * @property {string} resource for which the token is
 * @property {string} scope
 */

const loginKey = `login ${globalThis.location?.pathname}`;

/** @param {Uint8Array} bytes */
function base64url(bytes) { return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''); }

/** random returns a text that nobody can guess. */
function random() { return base64url(crypto.getRandomValues(new Uint8Array(32))); }

/**
 * endpoints returns what the issuer says of itself (OpenID Connect Discovery, RFC 8414).
 * @param {string} issuer
 * @returns {Promise<{ authorization: URL, token: URL }>}
 */
async function endpoints(issuer) {
  const at = new URL(issuer), path = at.pathname.replace(/\/$/, '');
  const places = [`${path}/.well-known/openid-configuration`, `/.well-known/oauth-authorization-server${path}`, `/.well-known/openid-configuration${path}`];
  let fault = 'the issuer says nothing of itself';
  for (const place of places) {
    let about;
    try {
      const response = await fetch(at.origin + place, { credentials: 'omit' });
      if (!response.ok) continue;
      about = await response.json();
    } catch (error) { // another place may do
      fault = `the issuer does not let this page read ${at.origin + place}: ${/** @type {Error} */ (error).message}`;
      continue;
    }
    if (about.issuer !== issuer) throw new Error('the issuer calls itself by another name');
    const authorization = new URL(about.authorization_endpoint), token = new URL(about.token_endpoint);
    for (const one of [authorization, token]) {
      if (one.protocol !== 'https:' && !(one.protocol === 'http:' && /^(127\.0\.0\.1|\[::1\]|localhost)$/.test(one.hostname))) throw new Error('the issuer has an endpoint without TLS');
    }
    if (token.origin !== at.origin) throw new Error(`the issuer gives tokens at another origin, ${token.origin}, to which this page may not send`);
    return { authorization, token };
  }
  throw new Error(fault);
}

/**
 * beginLogin leaves the page for the issuer.
 * @param {Login} login
 * @param {string} url of the page
 */
export async function beginLogin(login, url) {
  if (!globalThis.crypto?.subtle) throw new Error('a browser logs in from a page with TLS, or of this machine, alone');
  const { authorization } = await endpoints(login.issuer);
  const state = random(), verifier = random();
  const challenge = base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));
  sessionStorage.setItem(loginKey, JSON.stringify({ state, verifier, hash: location.hash }));
  const wanted = {
    response_type: 'code', client_id: login.clientID, redirect_uri: url, resource: login.resource, state,
    code_challenge: challenge, code_challenge_method: 'S256', ...login.scope && { scope: login.scope },
  };
  for (const [name, value] of Object.entries(wanted)) authorization.searchParams.set(name, value);
  location.assign(authorization);
}

/**
 * finishLogin returns the token for the code in the page's address, undefined if there is none. It takes
 * the code out of the address.
 * @param {Login} login
 * @param {string} url of the page
 * @returns {Promise<string | undefined>}
 */
export async function finishLogin(login, url) {
  const got = new URLSearchParams(location.search), begun = JSON.parse(sessionStorage.getItem(loginKey) ?? 'null');
  if (!got.has('state') || !got.has('code') && !got.has('error')) return undefined;
  const isOurs = begun !== null && got.get('state') === begun.state;
  if (isOurs) sessionStorage.removeItem(loginKey); // what somebody else sends ends no login
  history.replaceState(null, '', location.pathname + (begun?.hash ?? ''));
  if (!isOurs) throw new Error('this tab has not begun this login');
  if ((got.get('iss') ?? login.issuer) !== login.issuer) throw new Error('the code is of another issuer');
  if (got.has('error')) throw new Error(`the issuer refuses: ${got.get('error_description') ?? got.get('error')}`);
  const { token } = await endpoints(login.issuer);
  const response = await fetch(token, { method: 'POST', credentials: 'omit', body: new URLSearchParams({
    grant_type: 'authorization_code', code: got.get('code') ?? '', redirect_uri: url, client_id: login.clientID,
    code_verifier: begun.verifier, resource: login.resource,
  }) });
  const answer = await response.json().catch(() => ({}));
  if (typeof answer.access_token !== 'string') throw new Error(`the issuer gives no token: ${answer.error_description ?? answer.error ?? response.status}`);
  return answer.access_token;
}
