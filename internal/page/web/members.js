// The servers of a view, where its tools come from, and warnings about the rules of any server, by the state that the
// gateway has: that opens no session.
import { el, show, named, clip, count, loginButton } from './dom.js';

/** @typedef {{ name: string, state: string, tools?: number, failure?: { message: string, remedy?: string } }} MemberState */
/** @typedef {{ name: string, member?: string, own?: string }} OriginOfTool */

/** How often the state is asked for while people see it, and how often the page looks whether they do, in milliseconds. */
const membersEvery = 5000, looksEvery = 500;

const memberKinds = /** @type {Record<string, string>} */ ({
  healthy: 'ready', cached: 'ready', listed: 'ready', failing: 'failed', starting: 'initializing', unstable: 'initializing', late: 'initializing', draining: 'initializing',
});

/**
 * membersView returns what shows the servers of a view, and warnings about its rules, as long as people see it. Of a
 * server that is no view it has the warnings alone.
 * @param {string} url of the page
 * @param {() => string} token
 */
export function membersView(url, token) {
  const view = el('div');
  let tag = '', last = -Infinity;
  const ask = async () => {
    const headers = { Accept: 'application/json', ...token() && { Authorization: `Bearer ${token()}` }, ...tag && { 'If-None-Match': tag } };
    const response = await fetch(`${url}?page=state.json`, { cache: 'no-store', headers });
    if (!response.ok) return; // it has not changed, or the session says what is wrong
    tag = response.headers.get('ETag') ?? '';
    const state = await response.json();
    show(view, ...loginParts(url, state), ...warningsParts(state.warnings ?? [], state.omittedWarnings ?? 0),
      ...state.view === true ? membersParts(state.members ?? [], state.list ?? [], state.omitted ?? 0) : []);
  };
  setInterval(() => {
    if (document.hidden || view.getClientRects().length === 0 || performance.now() - last < membersEvery) return;
    last = performance.now();
    ask().catch(() => {}); // the session says that the gateway does not answer
  }, looksEvery);
  return view;
}

/**
 * loginParts says that the server is waiting for a login, and has the button for it where the page may begin one.
 * @param {string} url of the page
 * @param {{ loginCommand?: string, logsInHere?: boolean }} state
 */
function loginParts(url, { loginCommand, logsInHere }) {
  if (!loginCommand) return [];
  return [
    el('h3', {}, 'The server is waiting for a login'),
    el('p', {}, logsInHere === true && [loginButton(url), ' or run '], el('code', {}, clip(loginCommand, 300))),
  ];
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
