// The page at the root: a card for each server and view that the visitor may know of. It asks for the state of all
// every few seconds, while it can be seen: that opens no session.
import { el, show, button, copier, named, clip, count, say, recall, remember } from './dom.js';
import { ofCached, partsOf, stateName } from './states.js';
import { entries, shell } from './connect.js';
import { tokenField, tokenForm } from './token.js';
import { loginButton } from './serverlogin.js';

/**
 * @typedef {object} ServerFailure
 * @property {string} message
 * @property {string} [reason]
 * @property {string} [remedy]
 * @property {number} [at] in milliseconds since 1970
 */

/** @typedef {{ name: string, state: string, tools?: number, failure?: ServerFailure }} Member */

/** @typedef {{ name: string, title?: string, description?: string, member?: string, own?: string }} ListedTool */

/**
 * @typedef {object} ServerState as the gateway has it: see internal/page/state.go
 * @property {string} name
 * @property {string} [title]
 * @property {string} [version]
 * @property {string} [description]
 * @property {string} state
 * @property {boolean} [view]
 * @property {number} [tools]
 * @property {number} [prompts]
 * @property {number} [resources]
 * @property {ServerFailure} [failure]
 * @property {Member[]} [members]
 * @property {ListedTool[]} [list]
 * @property {string} [loginCommand]
 * @property {boolean} [logsInHere]
 * @property {number} [omitted]
 * @property {string[]} [warnings]
 * @property {number} [omittedWarnings]
 * @property {string} path
 * @property {boolean} [token]
 * @property {boolean} [logsIn]
 * @property {number} [paste]
 */

/** @typedef {{ client: string, text: string, aboutToken?: string, aboutProgram?: string }} ForAll */

/** @typedef {{ servers: ServerState[], omitted?: number, all?: ForAll }} Landing */

/** How each state looks: the others are neither good nor bad. */
const looks = /** @type {Record<string, string>} */ ({
  healthy: 'good', cached: 'good', listed: 'good', starting: 'wait', unstable: 'wait', late: 'wait', 'waiting for a login': 'wait', 'partly failing': 'wait', draining: 'wait', failing: 'bad',
});

/** How often the page asks, in milliseconds, and how many tools it shows that fit. */
const pollEvery = 5000, mostFound = 100;

/** Under which name each browser remembers the client that its user has chosen, on all pages of the gateway. */
const clientKey = 'client';

/** @param {string} path of a server, from the root */
function urlOf(path) { return new URL(path.slice(1), location.origin + location.pathname).href; }

/** @param {string} url of a server */
function tokenKeyOf(url) { return `token ${new URL(url).pathname}`; }

/** @param {string} state */
function stateMark(state) { return el('span', { class: `mark ${looks[state] ?? ''}` }, stateName(state)); }

/** @param {ServerState[]} servers */
function headingOf(servers) {
  const views = servers.filter(server => server.view).length, own = servers.length - views;
  if (servers.length === 1) return 'The MCP server';
  return [own > 0 && count(own, 'MCP server'), views > 0 && count(views, 'view')].filter(Boolean).join(', ');
}

class Cards {
  constructor() {
    /** @type {Record<string, import('./connect.js').Paste[]>} */
    this.pastes = JSON.parse(document.getElementById('about')?.textContent ?? '{}').pastes ?? {};
    /** @type {Landing} */
    this.landing = { servers: [] };
    this.tag = '';
    this.isAsking = false;
    this.useless = new Set(); // tokens of servers' pages that have done no more
    this.refused = false; // whether no server takes the token
    this.shownForAll = ''; // the text for all servers
    /** @type {string | undefined} */
    this.askedFor = ''; // why the page asks for a token
    /** @type {Map<string, { of: string, element: HTMLElement }>} */
    this.cards = new Map();
    const titles = [...new Set(Object.values(this.pastes).flat().map(paste => paste.title))];
    const before = recall(clientKey);
    this.client = titles.includes(before) ? before : titles[0] ?? '';
    this.heading = el('h1', {}, 'MCP servers');
    this.find = el('input', { type: 'search', id: 'find', placeholder: 'Find a tool of any server', 'aria-label': 'Find a tool of any server', autocomplete: 'off', oninput: () => this.showTools() });
    this.choose = el('select', { id: 'client', onchange: () => this.chooseClient() }, ...titles.map(title => el('option', { value: title, selected: title === this.client }, title)));
    this.forAll = el('div', { class: 'all' });
    this.trouble = el('div', { role: 'status' });
    this.asks = el('div', { id: 'asks' });
    this.found = el('section', { class: 'found', 'aria-label': 'Tools that fit', hidden: true });
    this.grid = el('ul', { class: 'cards', 'aria-label': 'Servers' });
    this.forget = button('Forget the token', () => this.forgetToken(), { class: 'small', hidden: true });
    show(document.getElementById('top') ?? document.body, el('p', {}, 'MCP gateway'), this.find, el('label', { class: 'way' }, 'Client ', this.choose), this.forget);
    document.addEventListener('visibilitychange', () => this.ask());
    window.addEventListener('pageshow', event => { if (event.persisted) this.ask(); });
    window.addEventListener('keydown', event => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || document.activeElement?.matches('input, textarea, select')) return;
      event.preventDefault();
      this.find.focus();
    });
    this.ask();
    setInterval(() => this.ask(), pollEvery);
  }

  get tokenKey() { return `token ${location.pathname}`; }

  token() { return sessionStorage.getItem(this.tokenKey) ?? ''; }

  chooseClient() {
    this.client = this.choose.value;
    remember(clientKey, this.client);
    this.cards.clear();
    this.draw();
    this.tag = '';
    this.ask();
  }

  forgetToken() {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith('token ')) sessionStorage.removeItem(key);
    this.tag = '';
    this.refused = false;
    this.ask();
  }

  /** ask gets how all servers are, if anybody sees the page. */
  async ask() {
    if (document.hidden || this.isAsking) return;
    this.isAsking = true;
    try {
      const landing = await this.get(`?page=state.json&client=${encodeURIComponent(this.client)}`, this.token(), this.tag);
      if (landing) await this.take(landing);
      show(this.trouble);
    } catch (error) {
      show(this.trouble, el('p', { class: 'warn' }, /** @type {Error} */ (error).message, ' This page tries again by itself.'));
    } finally {
      this.isAsking = false;
    }
  }

  /**
   * get returns a state; nothing if it is the one of the tag.
   * @param {string} url
   * @param {string} token
   * @param {string} [tag]
   */
  async get(url, token, tag = '') {
    let response;
    try {
      response = await fetch(url, { cache: 'no-store', headers: { Accept: 'application/json', ...token && { Authorization: `Bearer ${token}` }, ...tag && { 'If-None-Match': tag } } });
    } catch {
      throw new Error(`No answer from ${location.origin}: is sse-server running?`);
    }
    if (response.status === 304) return undefined;
    if (!response.ok) throw new Error(`The gateway answered ${response.status}.`);
    if (url.startsWith('?')) this.tag = response.headers.get('ETag') ?? '';
    return response.json();
  }

  /**
   * take takes how all servers are. Where the token of this page does not do, the one that the page of the server has
   * got may: each has its own with an issuer.
   * @param {Landing} landing
   */
  async take(landing) {
    for (const [i, server] of landing.servers.entries()) {
      const url = urlOf(server.path), key = tokenKeyOf(url), own = sessionStorage.getItem(key);
      if (server.state !== 'locked') {
        if (this.token() && server.token) sessionStorage.setItem(key, this.token()); // its page need not ask for it
        continue;
      }
      if (!own || own === this.token() || this.useless.has(own)) continue;
      try {
        landing.servers[i] = { ...server, ...await this.get(`${url}?page=state.json`, own) };
        this.tag = ''; // the next answer has this server locked again
      } catch { this.useless.add(own); }
    }
    this.landing = landing;
    const locked = landing.servers.filter(server => server.state === 'locked');
    this.refused = this.token() !== '' && locked.length > 0 && !landing.servers.some(server => server.token && server.state !== 'locked');
    this.forget.hidden = this.token() === '';
    this.askForToken(locked);
    this.draw();
  }

  draw() {
    const { servers, omitted, all } = this.landing;
    const tools = servers.filter(server => !server.view).reduce((sum, server) => sum + (server.tools ?? 0), 0);
    show(this.heading, headingOf(servers), tools > 0 && el('small', {}, ' ', count(tools, 'tool')));
    const wanted = servers.map(server => this.card(server));
    if (wanted.length !== this.grid.children.length || wanted.some((card, i) => this.grid.children[i] !== card)) {
      const focused = document.activeElement?.getAttribute('aria-label');
      show(this.grid, ...wanted, omitted && el('li', { class: 'soft' }, `and ${omitted} more`));
      if (focused) /** @type {HTMLElement | null} */ (this.grid.querySelector(`[aria-label=${JSON.stringify(focused)}]`))?.focus();
    }
    this.showAll(all);
    this.showTools();
    const main = document.getElementById('main') ?? document.body;
    if (!this.grid.isConnected) {
      show(main, this.trouble, this.asks, el('div', { class: 'head' }, this.heading, this.forAll), this.found, this.grid);
    }
  }

  /**
   * card returns the card of a server: the one that is there, if nothing has changed.
   * @param {ServerState} server
   */
  card(server) {
    const { list, ...rest } = server, of = JSON.stringify(rest), before = this.cards.get(server.path);
    if (before?.of === of) return before.element;
    const url = urlOf(server.path), title = clip(server.title || server.name, 100);
    const entry = entries({ name: server.name, url, token: server.token === true, logsIn: server.logsIn, pastes: this.pastes[server.paste ?? 0] ?? [] })
      .find(one => one.client === this.client);
    const element = el('li', { class: `card ${looks[server.state] ?? ''}` },
      el('div', { class: 'title' }, el('h2', {}, el('a', { href: url }, named(server.name, 64))), stateMark(server.state)),
      (server.view || title !== server.name) && el('p', { class: 'soft' }, server.view && el('span', { class: 'kind' }, 'View'), title !== server.name && named(title, 60), ' ', server.version && el('small', {}, named(server.version, 20))),
      server.description && el('p', { class: 'about', title: clip(server.description, 300) }, named(server.description, 300)),
      server.members && el('ul', { class: 'members', 'aria-label': 'Its servers' }, ...server.members.map(member => el('li', { class: looks[member.state] ?? '', title: memberText(member) },
        named(member.name, 40), el('span', { class: 'hidden' }, `: ${stateName(member.state)}`), member.tools !== undefined && el('small', {}, ' ', member.tools)))),
      server.loginCommand && el('p', {}, server.logsInHere === true && [loginButton(url), ' or run '], el('code', {}, clip(server.loginCommand, 300))),
      failuresOf(server),
      warningsOf(server),
      el('p', { class: 'counts' }, countsOf(server), server.state === 'cached' && ` · ${ofCached}`),
      entry && el('div', { class: 'paste' },
        entry.lack ? el('p', { class: 'soft' }, entry.lack) : [
          copier(`Copy for ${this.client}`, () => entry.text, `Copy for ${this.client}: ${server.name}`),
          copier('Copy the URL', () => url, `Copy the URL of ${server.name}`),
          entry.install && el('a', { class: 'install', href: entry.install, 'aria-label': `Install ${server.name} in ${this.client}` }, 'Install'),
          el('details', {}, el('summary', { 'aria-label': `Show what ${this.client} needs for ${server.name}` }, 'Show'),
            el('p', { class: 'soft' }, 'Paste into ', entry.where, ':'), el('pre', { tabindex: 0 }, entry.text),
            entry.aboutProgram && el('p', { class: 'soft' }, entry.aboutProgram),
            server.token && el('p', { class: 'soft' }, entry.aboutToken ?? 'It logs in by itself.'))]));
    this.cards.set(server.path, { of, element });
    return element;
  }

  /** @param {ForAll} [all] what the chosen client needs for all servers */
  showAll(all) {
    const many = this.landing.servers.length > 1 && all?.client === this.client;
    if (!many) {
      show(this.forAll);
      this.shownForAll = '';
      return;
    }
    const text = all.text.replace(/"@URL(\d+)@"|@URL(\d+)@/g, (place, quoted, bare) => {
      const url = urlOf(this.landing.servers[Number(quoted ?? bare)].path);
      return quoted === undefined ? shell(url) : JSON.stringify(url);
    });
    if (this.shownForAll === text) return;
    this.shownForAll = text;
    show(this.forAll, copier(`Copy all for ${this.client}`, () => text),
      el('details', {}, el('summary', {}, 'Show'), el('pre', { tabindex: 0 }, text), all.aboutProgram && el('p', { class: 'soft' }, all.aboutProgram), all.aboutToken && el('p', { class: 'soft' }, all.aboutToken)));
  }

  /** showTools shows the tools that fit what is typed, in the place of the cards. */
  showTools() {
    const words = this.find.value.trim().toLowerCase().split(/\s+/).filter(word => word !== '');
    this.grid.hidden = words.length > 0;
    this.found.hidden = words.length === 0;
    if (words.length === 0) {
      show(this.found);
      return;
    }
    const fitting = [];
    let unknown = 0;
    for (const server of this.landing.servers) {
      if (server.state !== 'locked' && server.list === undefined && server.tools !== 0) unknown++;
      for (const tool of server.list ?? []) {
        const text = [tool.name, tool.title, tool.own, tool.description, server.name].join(' ').toLowerCase();
        if (words.every(word => text.includes(word))) fitting.push({ server, tool });
      }
    }
    show(this.found, el('h2', {}, fitting.length === 0 ? 'No tool fits' : `${count(fitting.length, 'tool')} that ${fitting.length === 1 ? 'fits' : 'fit'}`),
      el('ul', { class: 'tools' }, ...fitting.slice(0, mostFound).map(({ server, tool }) => el('li', {},
        el('a', { href: `${urlOf(server.path)}#tool=${encodeURIComponent(tool.name)}` }, named(tool.title || tool.name, 100)), ' ',
        tool.title && el('code', {}, clip(tool.name, 100)), ' ', el('small', {}, 'in ', named(server.name, 64), tool.member && [', from ', named(tool.member, 64)]),
        tool.description && el('p', { class: 'soft' }, named(tool.description, 160))))),
      fitting.length > mostFound && el('p', { class: 'soft' }, `The first ${mostFound} are shown.`),
      unknown > 0 && el('p', { class: 'soft' }, `The tools of ${count(unknown, 'server')} are not known: nobody has listed them yet.`));
    say(fitting.length === 0 ? 'No tool fits' : count(fitting.length, 'tool'));
  }

  /** @param {ServerState[]} locked the servers of which the visitor sees no more than the name */
  askForToken(locked) {
    const why = locked.length === 0 ? '' : this.refused ? 'refused' : 'wanted';
    if (this.askedFor === why) return;
    this.askedFor = why;
    if (why === '') {
      show(this.asks);
      return;
    }
    const field = tokenField(), onToken = () => {
      this.tag = '';
      this.askedFor = undefined;
      this.ask();
    };
    show(this.asks, tokenForm(field, this.tokenKey, onToken,
      el('h2', { id: 'token-title' }, why === 'refused' ? 'The gateway does not take this token' : 'A token shows more'),
      el('p', { class: 'soft' }, 'With it you see how the servers are that you may use, and their tools. It stays in this tab, and ends with it.',
        locked.some(server => server.logsIn) && ' Where there is an issuer, open a server to log in.'),
      field.fault, el('div', { class: 'row' }, el('label', {}, 'Token', field.input), el('button', { type: 'submit', class: 'main' }, 'Show'))));
  }
}

/** @param {Member} member */
function memberText(member) { return [stateName(member.state), member.failure?.message].filter(Boolean).join(': '); }

/** @param {ServerState} server */
function countsOf(server) {
  if (server.state === 'locked') return '';
  const known = [
    server.tools === undefined ? undefined : count(server.tools, 'tool'), server.prompts ? count(server.prompts, 'prompt') : undefined,
    server.resources ? count(server.resources, 'resource') : undefined,
  ].filter(Boolean);
  return known.length === 0 ? 'Tools not known yet' : known.join(', ');
}

/** What to do about a failure where the gateway says no more than its reason. */
const remedies = new Map([
  ['timeout', 'It has not answered in time: --start-timeout gives a slow one more.'],
  ['start_failed', 'Correct its command or URL in the configuration of the gateway.'],
  ['gave_up', 'It ends soon after each start: correct its command and its configuration.'],
  ['unauthorized', 'Give the gateway credentials for it.'],
  ['bad_answer', 'What it has answered is not MCP: see whether its command needs an argument, such as stdio.'],
]);

/**
 * failuresOf says why a server fails, and what to do; for a view of each member.
 * @param {ServerState} server
 */
function failuresOf(server) {
  const all = [];
  if (server.failure) all.push({ name: '', failure: server.failure });
  for (const member of server.members ?? []) if (member.failure) all.push({ name: member.name, failure: member.failure });
  if (all.length === 0) return undefined;
  return el('div', { class: 'failure' }, ...all.slice(0, 3).map(({ name, failure: { message, reason, remedy, at } }) => {
    const [what, lines] = partsOf(message), advice = remedy || remedies.get(reason ?? '');
    return el('div', {},
      el('p', {}, name && el('b', {}, named(name, 64), ': '), named(what, 400), ' ', at !== undefined && el('small', {}, new Date(at).toLocaleTimeString())),
      lines && el('pre', { tabindex: 0, 'aria-label': `stderr of ${name || server.name}` }, el('bdi', {}, clip(lines, 600))),
      advice && el('p', { class: 'remedy' }, 'What to do: ', named(advice, 600)));
  }), all.length > 3 && el('p', { class: 'soft' }, `${all.length - 3} more fail.`));
}

/**
 * warningsOf says what is probably a mistake in the rules of a server.
 * @param {ServerState} server
 */
function warningsOf({ warnings = [], omittedWarnings = 0 }) {
  return warnings.length > 0 && el('ul', { class: 'warnings', 'aria-label': 'Warnings about its rules' },
    ...warnings.map(text => el('li', {}, named(text, 400))), omittedWarnings > 0 && el('li', { class: 'soft' }, `and ${omittedWarnings} more`));
}

if (globalThis.document?.getElementById('about')) new Cards();
