// What to paste into each client. The gateway has the table, with places for the URL and the name.

/**
 * @typedef {object} Install a link that installs a server: before, and then the configuration
 * @property {string} link
 * @property {string} config
 * @property {boolean} [base64] whether the configuration is in Base64
 */

/**
 * @typedef {object} Version
 * @property {string} text
 * @property {string} [aboutToken] what to do about the token in it
 * @property {Install} [install]
 */

/**
 * @typedef {object} Paste what people paste into a client
 * @property {string} title
 * @property {string} where where it goes
 * @property {boolean} [logsIn] whether the client gets a token from an issuer by itself
 * @property {string} [aboutProgram] what to do about the path of sse-server in it
 * @property {string} [lack] why there is nothing to paste
 * @property {Version} open for a server that wants no token
 * @property {Version} token
 */

/**
 * @typedef {object} Target
 * @property {string} name of the server
 * @property {string} url
 * @property {boolean} token whether a client needs a token in its configuration
 * @property {boolean} [logsIn] whether a client that can log in at an issuer needs none
 * @property {Paste[]} pastes
 */

/**
 * @typedef {object} Entry
 * @property {string} client
 * @property {string} where
 * @property {string} text
 * @property {string} [lack]
 * @property {string} [aboutProgram]
 * @property {string} [aboutToken]
 * @property {string} [install] a link
 */

/** @param {string} text in UTF-8 */
function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/**
 * shell quotes a word for a shell of Unix.
 * @param {string} word
 */
export function shell(word) { return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll('\'', '\'\\\'\'')}'`; }

/**
 * entries returns what to paste for each client.
 * @param {Target} target
 * @returns {Entry[]}
 */
export function entries({ name, url, token, logsIn, pastes }) {
  const plainName = name.replace(/[^\w-]+/g, '-');
  /** @type {Record<string, string>} */
  const places = { '"@URL@"': JSON.stringify(url), '@URL@': shell(url), '@NAME@': plainName }; // JSON is TOML, YAML and Python too
  const fill = (/** @type {string} */ text) => text.replace(/"@URL@"|@URL@|@NAME@/g, place => places[place]);
  return pastes.map(paste => {
    const { text, aboutToken, install } = token && !(logsIn && paste.logsIn) ? paste.token : paste.open;
    const config = fill(install?.config ?? '');
    return {
      client: paste.title, where: paste.where, text: fill(text), lack: paste.lack, aboutProgram: paste.aboutProgram, aboutToken,
      ...install && { install: fill(install.link) + encodeURIComponent(install.base64 ? base64(config) : config) },
    };
  });
}

/**
 * asCurl returns a call as a command for a shell.
 * @param {string} url
 * @param {any} message
 * @param {boolean} token
 */
export function asCurl(url, message, token) {
  return `curl ${shell(url)} -H 'Content-Type: application/json'${token ? ' -H "Authorization: Bearer $TOKEN"' : ''} -d ${shell(JSON.stringify(message))}`;
}

/** The longest part of an address that the page writes, in characters. */
export const longest = 8000;

/**
 * linkTo returns the address of the page with what it shows.
 * @param {string} shown
 */
export function linkTo(shown) { return `${location.origin}${location.pathname}${location.search}#${shown}`; }
