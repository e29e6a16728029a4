// How the server is, by the state that the gateway has, which opens no session: the servers of a view, where its tools
// come from, and warnings about the rules of any server.
import { el, named, clip, count } from './dom.js';

/** @typedef {{ name: string, state: string, tools?: number, failure?: { message: string, remedy?: string } }} MemberState */
/** @typedef {{ name: string, member?: string, own?: string }} OriginOfTool */

/** How often the state is asked for while it is wanted, and how often the page looks whether it is, in milliseconds. */
const stateEvery = 5000, looksEvery = 500;

const memberKinds = /** @type {Record<string, string>} */ ({
  healthy: 'ready', cached: 'ready', listed: 'ready', failing: 'failed', starting: 'initializing', unstable: 'initializing', late: 'initializing', draining: 'initializing',
});

/**
 * @typedef {object} ServerStatus how the server is, as the gateway has it: see internal/page/state.go
 * @property {string} state
 * @property {boolean} [view]
 * @property {MemberState[]} [members]
 * @property {OriginOfTool[]} [list]
 * @property {number} [omitted]
 * @property {string[]} [warnings]
 * @property {number} [omittedWarnings]
 * @property {string} [loginCommand]
 * @property {boolean} [logsInHere]
 */

/**
 * watchState asks for the state of the server while it is wanted, and returns what asks for it at once.
 * @param {string} url of the page
 * @param {() => string} token
 * @param {() => boolean} isWanted
 * @param {(state: ServerStatus) => void} take
 */
export function watchState(url, token, isWanted, take) {
  let tag = '', last = -Infinity, asked = 0;
  const ask = async () => {
    const own = ++asked;
    last = performance.now();
    const headers = { Accept: 'application/json', ...token() && { Authorization: `Bearer ${token()}` }, ...tag && { 'If-None-Match': tag } };
    const response = await fetch(`${url}?page=state.json`, { cache: 'no-store', headers });
    if (!response.ok) return; // it has not changed, or the session says what is wrong
    const state = await response.json();
    if (own !== asked) return; // a newer answer comes
    tag = response.headers.get('ETag') ?? '';
    take(state);
  };
  const now = () => ask().catch(() => {}); // the session says that the gateway does not answer
  setInterval(() => {
    if (!document.hidden && isWanted() && performance.now() - last >= stateEvery) now();
  }, looksEvery);
  return now;
}

/**
 * stateView returns what there is to know of the state of a server: warnings about its rules, and of a view its servers.
 * @param {ServerStatus} state
 * @returns {(HTMLElement | false)[]}
 */
export function stateView({ view, members = [], list = [], omitted = 0, warnings = [], omittedWarnings = 0 }) {
  return [...warningsParts(warnings, omittedWarnings), ...view === true ? membersParts(members, list, omitted) : []];
}

/**
 * warningsParts returns the warnings about rules; nothing if there is none.
 * @param {string[]} warnings
 * @param {number} omitted
 */
function warningsParts(warnings, omitted) {
  if (warnings.length === 0) return [];
  return [
    el('h3', {}, 'Warnings about the rules'),
    el('ul', { class: 'log' }, ...warnings.map(text => el('li', { class: 'warn' }, named(text, 400))),
      omitted > 0 && el('li', { class: 'soft' }, `and ${omitted} more`)),
  ];
}

/**
 * membersParts returns what is shown of a view.
 * @param {MemberState[]} members
 * @param {OriginOfTool[]} tools
 * @param {number} omitted
 */
function membersParts(members, tools, omitted) {
  return [
    el('h3', {}, 'Servers of this view'),
    el('ul', { class: 'log' }, ...members.map(member => el('li', {},
      el('b', {}, named(member.name, 64)), ' ', el('span', { class: `mark ${memberKinds[member.state] ?? ''}` }, clip(member.state, 40)), ' ',
      el('small', {}, member.tools === undefined ? 'tools not known yet' : count(member.tools, 'tool')),
      member.failure && el('div', { class: 'bad' }, named(member.failure.message, 400)),
      member.failure?.remedy && el('div', {}, 'What to do: ', named(member.failure.remedy, 600))))),
    tools.length > 0 && el('details', {}, el('summary', {}, 'Where each tool comes from'),
      el('ul', { class: 'log' }, ...tools.map(tool => el('li', {},
        el('code', {}, clip(tool.name, 128)), ' ', el('small', {}, 'from ', named(tool.member, 64), tool.own && [', there ', el('code', {}, clip(tool.own, 128))]))),
      omitted > 0 && el('li', { class: 'soft' }, `and ${omitted} more`))),
  ];
}
