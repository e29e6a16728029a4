// The head of the page: what the server is, how it is, and how clients get it.
import { el, show, button, copier, named, clip, plain, took, count, recall, remember } from './dom.js';
import { entries } from './connect.js';
import { ofCached, partsOf } from './states.js';
import { tree, prose } from './json.js';
import { needsToken } from './session.js';

/** @typedef {import('./session.js').Session} Session */

/** What each condition of a server is called, how it looks, and what a screen reader says of the server. */
export const conditions = {
  connecting: { mark: 'connecting', kind: 'initializing', said: 'is being asked' },
  starting: { mark: 'starting', kind: 'initializing', said: 'is starting' },
  resting: { mark: `Cached: ${ofCached}`, kind: 'ready', said: `is cached, and ${ofCached}` },
  ready: { mark: 'ready', kind: 'ready', said: 'is ready' },
  login: { mark: 'waiting for a login', kind: 'initializing', said: 'is waiting for a login' },
  locked: { mark: 'waits for a token', kind: 'initializing', said: 'waits for a token' },
  failed: { mark: 'failed', kind: 'failed', said: 'has failed' },
  closed: { mark: 'not connected', kind: 'failed', said: 'is not connected' },
};

/**
 * conditionOf returns how the server of a session is.
 * @param {Session} session
 * @param {boolean} [needsLogin] whether the server is waiting for a login: what answers is in its place
 * @returns {keyof typeof conditions}
 */
export function conditionOf(session, needsLogin = false) {
  if (needsToken(session.error)) return 'locked';
  if (needsLogin && (session.state === 'ready' || session.state === 'resting')) return 'login';
  return /** @type {keyof typeof conditions} */ (session.state);
}

/**
 * headline says in the bar what the server is, and how it is.
 * @param {Session | undefined} session
 * @param {string} name that the gateway has for the server
 * @param {boolean} needsLogin
 * @returns {HTMLElement}
 */
export function headline(session, name, needsLogin) {
  const state = session ? conditionOf(session, needsLogin) : 'closed', info = session?.server?.serverInfo ?? {};
  return el('div', { class: `headline ${state === 'starting' || state === 'connecting' ? 'initializing' : state}` },
    el('h1', {}, named(info.title || info.name || name || 'MCP server', 100)),
    info.version && el('small', { class: 'version' }, named(versionOf(info.version), 60)),
    mark(session ? conditions[state].kind : '', conditions[state].mark),
    session && state === 'starting' && el('small', {}, 'for ', el('span', { id: 'seconds' })),
    session && state === 'ready' && el('small', { class: 'after' }, `after ${took(session.readyAfter)}`));
}

/**
 * trouble says what is wrong with the session, and what people may do.
 * @param {Session | undefined} session
 * @param {() => void} again
 * @param {boolean} isLinked whether another site has led here
 * @returns {HTMLElement | undefined} undefined if nothing is wrong
 */
export function trouble(session, again, isLinked) {
  if (!session) {
    return isLinked ? el('section', { class: 'notice', 'aria-label': 'Not connected' }, el('p', {}, 'You came from a link on another site. Connecting starts a session of the server.'),
      button('Connect', again, { class: 'main' })) : undefined;
  }
  const state = conditionOf(session), error = /** @type {any} */ (session.error), [what, words] = parts(error?.message ?? '');
  if (state === 'starting') return error ? el('section', { class: 'notice', 'aria-label': 'The server starts' }, el('p', {}, named(what, 2000)), words) : undefined;
  if (state !== 'failed' && state !== 'closed') return undefined;
  const why = error?.data ?? error?.error?.data;
  return el('section', { class: 'notice bad-notice', 'aria-label': `The server ${conditions[state].said}` }, el('p', {}, el('b', {}, `The server ${conditions[state].said}. `), named(what, 4000)), words,
    remedy(why, words !== undefined),
    el('div', { class: 'row middle' }, button('Connect again', again), session.takesCalls && el('span', { class: 'soft' }, 'The next call starts the server again.'),
      session.isLost && el('span', { class: 'soft' }, 'This page tries again by itself.')),
    why && el('details', {}, el('summary', {}, 'What the gateway says'), tree(why, 2)));
}

/**
 * aboutView says what there is to know of the server.
 * @param {Session | undefined} session
 * @param {{ tools: any[] | undefined, prompts: any[] | undefined, resources: any[] | undefined, templates: any[] | undefined }} lists
 * @returns {HTMLElement}
 */
export function aboutView(session, lists) {
  const server = session?.server;
  if (!session || !server) return el('div', {}, el('p', { class: 'soft' }, 'Not known without a session.'));
  const info = server.serverInfo ?? {}, title = info.title || info.name;
  return el('div', {},
    el('p', {}, named(title, 200), ' ', named(info.version, 100), title !== info.name && [' ', el('code', {}, clip(info.name, 200))]),
    el('p', {}, session.transport.title, ', MCP ', named(server.protocolVersion, 20), ': ',
      [counted(lists.tools, 'tool'), counted(lists.prompts, 'prompt'), counted(lists.resources, 'resource'), counted(lists.templates, 'template')].filter(Boolean).join(', ')),
    el('p', { class: 'soft' }, session.initializes ? 'This page tells the server that it can be asked. A server may have more tools for such a client than for one that declares nothing, which the banner counts.'
      : 'The gateway initializes and declares nothing, as for the count in the banner. A server may have more tools for a client that can be asked.'),
    server.instructions && [el('h3', {}, 'Instructions'), prose(server.instructions, 4000)]);
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
 * parts returns what a message says, and what the server wrote to stderr, in its lines.
 * @param {unknown} message
 * @returns {[string, Node | undefined]}
 */
function parts(message) {
  const [what, lines] = partsOf(clip(message, 4000).replace(/^initialization failed: /, ''));
  return [what, lines ? el('pre', { tabindex: 0, 'aria-label': 'stderr of the server' }, el('bdi', {}, lines)) : undefined];
}

/**
 * remedy says what to do, as the gateway says it to who may know, or else by the reason.
 * @param {any} why the data of the error
 * @param {boolean} hasWords whether the page shows what the server wrote to stderr
 * @returns {Node | undefined}
 */
function remedy(why, hasWords) {
  if (typeof why?.remedy === 'string') return el('p', {}, 'What to do: ', named(why.remedy, 1000));
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
 * @returns {HTMLElement}
 */
export function connectView(target) {
  const all = entries(target), chosen = recall('client');
  const shown = el('div', { class: 'connect' });
  const choose = el('select', { id: 'client', onchange: () => { remember('client', choose.value); fill(); } },
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
  return el('div', {},
    el('p', { class: 'url' }, el('code', {}, clip(target.url, 500)), ' ', copier('Copy the URL', () => target.url)),
    el('label', { class: 'field' }, 'Client', choose), shown);
}
