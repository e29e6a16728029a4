// The login at a server at which nobody is logged in: its button, and the way back to the page. login.js has that at the
// issuer of the gateway.
import { el, show, button, clip } from './dom.js';

/**
 * begunKeyOf says where the tab keeps that its button has begun a login.
 * @param {string} url of the page of the server
 */
function begunKeyOf(url) { return `begun ${new URL(url).pathname}`; }

/**
 * loginButton begins the login at a server, and has the browser go where a person logs in. It comes back to the page of
 * the server, with a word that the gateway has given to this tab alone.
 * @param {string} url of that page
 * @param {Record<string, any>} [props] of the button
 * @returns {HTMLElement}
 */
export function loginButton(url, props) {
  const trouble = el('span', { class: 'warn', role: 'status' });
  return el('span', {}, button('Log in', async () => {
    show(trouble);
    try {
      const response = await fetch(`${url}?page=login`, { method: 'POST', cache: 'no-store' });
      if (!response.ok) throw new Error(clip(await response.text(), 200));
      const { link, word } = await response.json();
      if (!/^https?:/.test(link)) throw new Error('There is no link.');
      const isHere = location.pathname === new URL(url).pathname;
      sessionStorage.setItem(begunKeyOf(url), JSON.stringify({ word, hash: isHere ? location.hash : '' }));
      location.assign(link);
    } catch (error) {
      show(trouble, ' ', /** @type {Error} */ (error).message);
    }
  }, props), trouble);
}

/**
 * comesFromLogin reports whether the browser comes back from a login that the button has begun in this tab. It takes the
 * word out of the address, and puts back what was there. A link of somebody else cannot have the word, which is good
 * once.
 * @param {string} url of the page
 */
export function comesFromLogin(url) {
  const [, word] = /^#logged-in=(\w+)$/.exec(location.hash) ?? [];
  if (!word) return false;
  const begun = JSON.parse(sessionStorage.getItem(begunKeyOf(url)) ?? 'null'), isOurs = begun !== null && begun.word === word;
  if (isOurs) sessionStorage.removeItem(begunKeyOf(url)); // what somebody else sends ends no login
  history.replaceState(null, '', location.pathname + location.search + (isOurs ? begun.hash : ''));
  return isOurs;
}

/**
 * loginNotice says that the server is waiting for a login, and how people log in, as far as the visitor may do that.
 * @param {string} url of the page
 * @param {{ loginCommand?: string, logsInHere?: boolean }} state of the server
 */
export function loginNotice(url, { loginCommand, logsInHere }) {
  return el('section', { class: 'notice', 'aria-label': 'Waiting for a login' },
    el('div', { class: 'row middle' }, el('p', {}, 'Nobody is logged in at this server: its tools work after the login.'),
      logsInHere === true && loginButton(url, { class: 'main' }),
      loginCommand ? el('p', {}, logsInHere === true ? 'Or run ' : 'Run in a terminal: ', el('code', {}, clip(loginCommand, 300))) : el('p', {}, 'Ask its operator to log in.')));
}
