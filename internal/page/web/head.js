// The head of the page: what the server is, how it is, and how clients get it.
import { el, show, button, copier, named, clip, plain, took, count } from './dom.js';
import { entries } from './connect.js';
import { tree, prose } from './json.js';
import { needsToken } from './session.js';

/** @typedef {import('./session.js').Session} Session */

const shortText = 400;

/** What each condition of a server is called, how it looks, and what a screen reader says of the server. */
export const conditions = {
  connecting: { mark: 'connecting', kind: 'initializing', said: 'is being asked' },
  starting: { mark: 'starting', kind: 'initializing', said: 'is starting' },
  resting: { mark: 'known from before', kind: '', said: 'is known from before' },
  ready: { mark: 'ready', kind: 'ready', said: 'is ready' },
  locked: { mark: 'waits for a token', kind: 'initializing', said: 'waits for a token' },
  failed: { mark: 'failed', kind: 'failed', said: 'has failed' },
  closed: { mark: 'not connected', kind: 'failed', said: 'is not connected' },
};

/**
 * conditionOf returns how the server of a session is.
 * @param {Session} session
 * @returns {keyof typeof conditions}
 */
export function conditionOf(session) { return needsToken(session.error) ? 'locked' : /** @type {keyof typeof conditions} */ (session.state); }

/**
 * headline says how the session is, in words.
 * @param {Session | undefined} session
 * @param {{ tools: any[] | undefined, prompts: any[] | undefined, resources: any[] | undefined, templates: any[] | undefined }} lists
 * @param {() => void} again
 * @param {{ name: string, isLinked: boolean }} before what is known without a session: the name that the gateway has for it, and whether another site has led here
 * @returns {HTMLElement}
 */
export function headline(session, lists, again, { name, isLinked }) {
  const state = session ? conditionOf(session) : 'closed', info = session?.server?.serverInfo ?? {};
  return el('section', { class: `headline ${state === 'starting' || state === 'connecting' ? 'initializing' : state}`, 'aria-labelledby': 'headline' },
    el('h1', { id: 'headline' }, named(info.title || info.name || name || 'MCP server', 100), ' ',
      info.version && el('small', {}, named(versionOf(info.version), 60))),
    ...session ? condition(session, state, again) : [el('p', {}, mark('', 'not connected'))],
    !session && isLinked && el('div', {}, el('p', {}, 'You came from a link on another site. Connecting starts a session of the server.'),
      el('div', { class: 'row' }, button('Connect', again, { class: 'main' }))),
    session?.server && el('p', { class: 'soft' }, session.transport.title, ', MCP ', named(session.server.protocolVersion, 20), ': ',
      [counted(lists.tools, 'tool'), counted(lists.prompts, 'prompt'), counted(lists.resources, 'resource'), counted(lists.templates, 'template')].filter(Boolean).join(', ')),
    session?.server?.instructions && el('details', { class: 'instructions', open: plain(session.server.instructions).length <= shortText }, el('summary', {}, 'Instructions'), prose(session.server.instructions)));
}

/**
 * versionOf shortens a version of Go that nobody has given a name to its commit.
 * @param {unknown} version
 */
export function versionOf(version) { return plain(version).replace(/^v\d+\.\d+\.\d+-(?:.*\.)?\d{14}-([0-9a-f]{12})(\+dirty)?$/, '$1'); }

/**
 * @param {any[] | undefined} list
 * @param {string} one
 */
function counted(list, one) { return list && count(list.length, one); }

/**
 * @param {Session} session
 * @param {keyof typeof conditions} state
 * @param {() => void} again
 * @returns {(Node | undefined)[]}
 */
function condition(session, state, again) {
  const error = /** @type {any} */ (session.error), [what, words] = parts(error?.message ?? '');
  const shown = mark(conditions[state].kind, conditions[state].mark);
  switch (state) {
    case 'connecting': case 'locked': return [el('p', {}, shown)];
    case 'starting': return [el('p', {}, shown, ' for ', el('span', { id: 'seconds' }), error ? el('span', {}, ': ', named(what, 2000)) : ''), words];
    case 'resting': return [el('p', {}, shown, ': the server starts with the first call.')];
    case 'ready': return [el('p', {}, shown, ` after ${took(session.readyAfter)}`)];
  }
  const why = error?.data ?? error?.error?.data;
  return [el('p', {}, shown, ' ', named(what, 4000)), words,
    remedy(why, words !== undefined),
    session.takesCalls ? el('p', { class: 'soft' }, 'The next call starts the server again.') : undefined,
    session.isLost ? el('p', { class: 'soft' }, 'This page tries again by itself.') : undefined,
    el('div', { class: 'row' }, button('Connect again', again)),
    why && el('details', {}, el('summary', {}, 'What the gateway says'), tree(why, 2))];
}

/**
 * parts returns what a message says, and what the server wrote to stderr, in its lines.
 * @param {unknown} message
 * @returns {[string, Node | undefined]}
 */
function parts(message) {
  const [what, ...words] = clip(message, 4000).replace(/^initialization failed: /, '').split(/; (?:stderr|its stderr says): /);
  return [what, words.length > 0 ? el('pre', { tabindex: 0, 'aria-label': 'stderr of the server' }, el('bdi', {}, words.join(' | ').replaceAll(' | ', '\n'))) : undefined];
}

/**
 * remedy says what to do, as the gateway says it to who may know, or else by the reason.
 * @param {any} why the data of the error
 * @param {boolean} hasWords whether the page shows what the server wrote to stderr
 * @returns {Node | undefined}
 */
function remedy(why, hasWords) {
  if (typeof why?.remedy === 'string') return el('p', {}, 'What to do: ', named(why.remedy, 1000), '.');
  if (!advice.has(why?.reason)) return undefined;
  return el('p', { class: 'soft' }, advice.get(why.reason), hasWords || why.reason === 'unauthorized' ? '' : ` ${seeLog}`);
}

const seeLog = 'The lines “server stderr” and “server exited” in the log of the gateway say more.';

/** What to do about a failed start, by the reason that the error names: docs/reference/errors.md has more. */
const advice = new Map([
  ['timeout', 'The server has not answered in time: --start-timeout gives a slow one more.'],
  ['start_failed', 'Correct the command or the URL of the server in the configuration of the gateway.'],
  ['gave_up', 'The server ends soon after each start: correct its command and its configuration.'],
  ['unauthorized', 'Give the gateway credentials for the server, such as --header "Authorization: Bearer TOKEN".'],
  ['rejected', 'The server has refused to start a session.'],
  ['bad_answer', 'What the server has answered is not MCP: see whether its command needs an argument, such as stdio.'],
]);

/** @param {string} kind @param {string} text */
export function mark(kind, text) { return el('span', { class: `mark ${kind}` }, text); }

/**
 * connectView has what to paste into each client.
 * @param {import('./connect.js').Target} target
 * @param {string} [chosen] the client that is shown
 * @returns {HTMLElement}
 */
export function connectView(target, chosen) {
  const all = entries(target);
  const shown = el('div', { class: 'connect' });
  const choose = el('select', { id: 'client', onchange: () => fill() },
    ...all.map(one => el('option', { value: one.client, selected: one.client === chosen }, one.client)));
  const fill = () => {
    const one = /** @type {import('./connect.js').Entry} */ (all.find(entry => entry.client === choose.value));
    if (one.lack) show(shown, el('p', {}, one.lack));
    else show(shown,
      el('p', {}, 'Paste into ', one.where, ':',
        one.install && el('a', { class: 'install', href: one.install }, `Install in ${one.client}`)),
      el('div', { class: 'paste' }, el('pre', { tabindex: 0 }, one.text), copier('Copy', () => one.text, `Copy what ${one.client} needs`)),
      one.aboutProgram && el('p', { class: 'soft' }, one.aboutProgram),
      target.token && el('p', { class: 'soft' }, one.aboutToken ?? 'It logs in by itself.'));
  };
  fill();
  return el('section', { 'aria-labelledby': 'connect-title', class: 'card' },
    el('h2', { id: 'connect-title' }, 'Connect a client'),
    el('div', { class: 'row' }, el('label', {}, 'Client', choose),
      el('p', { class: 'url' }, 'URL ', el('code', {}, clip(target.url, 500)), ' ', copier('Copy the URL', () => target.url))), shown);
}
