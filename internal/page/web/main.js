// The page: one session at a time, and what is shown of it.
import { el, show, button, clip, plain, took, say, recall, remember } from './dom.js';
import { Wire, wireView } from './wire.js';
import { StreamableHTTP, HTTPSSE, Unreachable, visible } from './transport.js';
import { Session, newest, needsToken, paced } from './session.js';
import { headline, trouble, aboutView, connectView, conditionOf, conditions } from './head.js';
import { longest } from './connect.js';
import { tokenField, tokenForm } from './token.js';
import { ToolsView } from './tools.js';
import { PromptsView } from './prompts.js';
import { ResourcesView } from './resources.js';
import { watchState, stateView } from './members.js';
import { LogsView } from './logs.js';
import { prepareChecks } from './check.js';
import { elicit } from './elicit.js';
import { Dock } from './dock.js';
import { beginLogin, finishLogin } from './login.js';
import { comesFromLogin, loginNotice } from './serverlogin.js';

/**
 * @typedef {object} About what the gateway says of the page
 * @property {string} name
 * @property {string[]} transports
 * @property {boolean} autoInitialize
 * @property {boolean} needsSession whether a client has to open a session before its first request
 * @property {import('./limits.js').Limit[]} clients
 * @property {import('./connect.js').Paste[]} pastes
 * @property {import('./login.js').Login} [login]
 */

/** @typedef {{ tools?: any[], prompts?: any[], resources?: any[], templates?: any[] }} Lists */

/** The ways in which the page can connect. */
const ways = {
  streamable: { title: 'Streamable HTTP', needs: 'streamable' },
  sse: { title: 'HTTP+SSE, gateway initializes', needs: 'sse' },
  'sse-own': { title: 'HTTP+SSE, own initialize', needs: 'sse' },
};

/** The lists of a server: the capability, the request, the member, and the notification of a change. */
const lists = /** @type {const} */ ([
  ['tools', 'tools', 'tools/list', 'tools'],
  ['prompts', 'prompts', 'prompts/list', 'prompts'],
  ['resources', 'resources', 'resources/list', 'resources'],
  ['templates', 'resources', 'resources/templates/list', 'resourceTemplates'],
]);

/** After how many milliseconds a session was a good one, and the longest pause before another try. */
const calm = 30000;
// How many times a session asks again for its lists, after requests that did not reach the gateway.
const mostListTries = 20;

export class App {
  constructor() {
    /** @type {About} */
    this.about = JSON.parse(document.getElementById('about')?.textContent ?? '{}');
    this.url = location.origin + location.pathname;
    this.wire = new Wire();
    /** @type {Session | undefined} */
    this.session = undefined;
    /** @type {Session | undefined} */
    this.known = undefined; // the session whose server is known
    /** @type {Lists} */
    this.lists = {};
    /** @type {Partial<Record<keyof Lists, unknown>>} */
    this.faults = {}; // why a list is not known
    /** @type {Map<keyof Lists, () => Promise<void>>} */
    this.loads = new Map();
    this.isOAuth = false; // whether clients can log in by themselves
    this.tries = 0; // to get a session that was lost again
    this.listTries = 0; // to get the lists of a session for which the gateway was not reached
    this.isRefused = false; // for want of a token
    this.isLinked = isLinked();
    this.needsLogin = false; // whether the server is waiting for a login
    this.logsInHere = false; // whether the page may begin that
    this.asks = el('div', { id: 'asks' });
    this.forget = button('Forget the token', () => this.forgetToken(), { class: 'small' });
    this.aboutWay = el('div', { role: 'status' });
    this.slow = el('div', { role: 'status' });
    this.head = el('div', { class: 'head' });
    this.trouble = el('div');
    this.connect = el('div');
    this.told = el('div'); // what there is to know of the server
    this.state = el('div'); // and of its state
    this.login = el('div', { role: 'status' });
    this.tools = new ToolsView(this);
    this.prompts = new PromptsView(this);
    this.resources = new ResourcesView(this);
    this.logs = new LogsView(this);
    this.askState = watchState(this.url, () => this.token(), () => this.needsLogin || this.state.getClientRects().length > 0, state => this.takeState(state));
    this.build();
    window.addEventListener('pagehide', () => this.session?.close());
    window.addEventListener('pageshow', event => { if (event.persisted && this.session) this.open(); });
    window.addEventListener('hashchange', () => this.fromAddress());
    this.begin();
  }

  /**
   * begin opens the first session, with the token of a login if the page comes from one. A session may start
   * a process, so it waits until somebody looks at the page, and wants it.
   */
  async begin() {
    if (comesFromLogin(this.url)) this.isLinked = false; // a link of another site cannot say so
    this.update();
    try {
      const token = this.about.login && await finishLogin(this.about.login, this.url);
      if (token) {
        sessionStorage.setItem(this.tokenKey, token);
        this.isLinked = false; // the issuer has led back
      }
    } catch (error) {
      this.loginFault = /** @type {Error} */ (error).message;
    }
    await visible();
    if (!this.isLinked) await this.open();
  }

  /** build makes the page. */
  build() {
    const served = Object.entries(ways).filter(([name, way]) => this.about.transports.includes(way.needs) && (name !== 'sse' || this.about.autoInitialize));
    this.way = el('select', { id: 'way', 'aria-label': 'Transport', title: 'Transport', onchange: () => this.open() }, ...served.map(([name, way]) => el('option', { value: name }, way.title)));
    const wire = wireView(this.wire);
    this.dock = new Dock([
      { name: 'wire', title: 'Wire', ...wire, onshow: () => this.wire.onchange() },
      { name: 'log', title: 'Log', element: this.logs.element, controls: this.logs.controls, onshow: () => {} },
    ]);
    const panels = [
      { name: 'tools', title: 'Tools', view: this.tools }, { name: 'prompts', title: 'Prompts', view: this.prompts },
      { name: 'resources', title: 'Resources', view: this.resources },
    ];
    const tabs = new Map(panels.map(({ name, title }) => [name, button(title, () => this.showPart?.(name))]));
    this.tabs = tabs;
    /** @type {(name: string) => void} */
    this.showPart = name => {
      this.part = name;
      for (const panel of panels) {
        panel.view.element.hidden = panel.name !== name;
        tabs.get(panel.name)?.setAttribute('aria-pressed', String(panel.name === name));
      }
    };
    this.showPart('tools');
    const drawer = this.drawer();
    show(document.getElementById('top') ?? document.body,
      listURL() && el('a', { href: listURL(), class: 'all' }, 'All servers'), this.head,
      el('nav', { class: 'tabs', 'aria-label': 'Sections' }, ...tabs.values()),
      el('div', { class: 'tools' }, this.forget, this.way, ...drawer.buttons, themeSwitch()));
    this.forget.hidden = true;
    show(document.getElementById('main') ?? document.body, el('div', { class: 'strip' }, this.login, this.asks, this.slow, this.aboutWay, this.trouble),
      ...panels.map(panel => panel.view.element), this.dock.element, drawer.element);
    document.addEventListener('keydown', event => this.key(event, panels));
    this.showConnect();
  }

  /** drawer makes what the bar opens beside the panes: what to paste, and what there is to know of the server. */
  drawer() {
    const title = el('h2', { id: 'drawer-title' }), place = el('div', { class: 'inside' });
    const element = el('aside', { class: 'drawer', hidden: true, tabindex: -1, 'aria-labelledby': 'drawer-title', onkeydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === 'Escape') close(); } },
      el('div', { class: 'row middle' }, title, button('Close', () => close(), { class: 'small end' })), place);
    /** @type {HTMLElement | undefined} */
    let opener;
    const close = () => {
      element.hidden = true;
      opener?.setAttribute('aria-expanded', 'false');
      opener?.focus({ preventScroll: true });
      opener = undefined;
    };
    const parts = [{ label: 'About', title: 'About the server', inside: el('div', {}, this.told, this.state) }, { label: 'Connect', title: 'Connect a client', inside: this.connect }];
    const buttons = parts.map(part => {
      const made = button(part.label, () => {
        const isOpen = opener === made;
        opener?.setAttribute('aria-expanded', 'false');
        if (isOpen) return close();
        opener = made;
        made.setAttribute('aria-expanded', 'true');
        title.textContent = part.title;
        show(place, part.inside);
        element.hidden = false;
        element.focus({ preventScroll: true });
      }, { 'aria-expanded': 'false', 'aria-label': part.label === 'Connect' ? part.title : undefined, class: part.label === 'Connect' ? 'accent' : undefined });
      return made;
    });
    return { element, buttons };
  }

  /**
   * key takes the keys that work wherever nobody types: / finds.
   * @param {KeyboardEvent} event
   * @param {{ name: string, view: { search: HTMLInputElement } }[]} panels
   */
  key(event, panels) {
    const at = /** @type {HTMLElement} */ (event.target);
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || document.querySelector('dialog[open]')) return;
    const { search } = panels.find(panel => panel.name === this.part)?.view ?? {};
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select();
  }

  /**
   * toAddress writes into the page's address what is shown, in place of what was to be written before.
   * @param {(() => string) | undefined} shown
   */
  toAddress(shown) {
    clearTimeout(this.addressing);
    if (!shown) return;
    this.addressing = setTimeout(() => {
      const address = shown();
      if (address.length <= longest) history.replaceState(null, '', `#${address}`);
    }, 100);
  }

  /** fromAddress shows what the page's address names, and runs nothing. */
  fromAddress() {
    const address = new URLSearchParams(location.hash.slice(1));
    for (const [name, view] of /** @type {const} */ ([['tool', this.tools], ['prompt', this.prompts], ['resource', this.resources], ['template', this.resources]])) {
      if (!address.has(name)) continue;
      if (view !== this.tools || this.part !== 'tools') this.showPart?.(view === this.tools ? 'tools' : view === this.prompts ? 'prompts' : 'resources');
      view.fromAddress(address);
      return;
    }
  }

  /** name returns what the server is called in the configurations of clients: what it calls itself if the gateway has no name for it. */
  name() {
    if (this.about.name) return this.about.name;
    const info = this.session?.server?.serverInfo?.name;
    const called = typeof info === 'string' ? info.slice(-200).split('/').pop()?.toLowerCase().replace(/[^a-z0-9_-]+/g, '-').replace(/^[-_]+|[-_]+$/g, '').slice(0, 64) : '';
    return called || 'server';
  }

  get tokenKey() { return `token ${location.pathname}`; }

  token() { return sessionStorage.getItem(this.tokenKey) ?? ''; }

  /** forgetToken begins anew: the gateway asks for another one. */
  forgetToken() {
    sessionStorage.removeItem(this.tokenKey);
    this.open();
  }

  /** needsToken reports whether clients need a token. */
  needsToken() { return this.isRefused || this.token() !== ''; }

  /** curls reports whether a call works without a session, so with one command. */
  curls() { return !this.about.needsSession; }

  /**
   * read shows a resource.
   * @param {string} uri
   */
  read(uri) {
    this.showPart?.('resources');
    this.resources.choose(uri);
  }

  /** open opens a session, in place of the one before. */
  async open() {
    this.session?.close();
    clearTimeout(this.retry);
    this.wire.begin();
    this.lists = {};
    this.faults = {};
    show(this.asks);
    show(this.slow);
    const way = this.way?.value ?? 'streamable';
    this.forget.hidden = this.token() === '';
    show(this.aboutWay, way === 'sse' && el('p', { class: 'notice' }, 'The gateway initializes; tools that ask will fail here.'));
    const options = { url: this.url, token: () => this.token(), wire: this.wire, version: newest,
      onwait: (/** @type {boolean} */ waits) => show(this.slow, waits && el('p', { class: 'notice warn' }, 'A request waits for its response: the browser may have no connection left for this gateway: close other tabs of it.')) };
    const transport = way === 'streamable' ? new StreamableHTTP(options) : new HTTPSSE(options);
    const session = new Session(transport, this.wire, way !== 'sse');
    this.session = session;
    this.loads = new Map(lists.map(list => [list[0], paced(() => this.load(session, list))]));
    session.onstate = () => { if (session === this.session) this.changed(session); };
    session.onnew = () => { this.known = undefined; };
    session.onnotification = (method, params) => { if (session === this.session) this.notified(session, method, params); };
    session.onrequest = (method, params, signal, calls) => method === 'elicitation/create' ? elicit(this.asks, params, signal, calls) : undefined;
    this.changed(session);
    this.update();
    await session.start();
  }

  /** @param {Session} session whose state has changed */
  changed(session) {
    this.showHead();
    clearInterval(this.clock);
    if (session.state === 'starting') {
      this.clock = setInterval(() => {
        const seconds = document.getElementById('seconds');
        if (seconds) seconds.textContent = took(performance.now() - session.began);
      }, 100);
    }
    if (session.server && !session.isOver && this.known !== session) {
      this.known = session;
      this.listTries = 0;
      this.showConnect();
      this.askState();
      for (const load of this.loads.values()) load();
      this.resources.followAgain();
      this.logs.setLevel();
      prepareChecks();
    }
    clearTimeout(this.retry);
    if (session.isLost) {
      if (performance.now() - session.opened > calm) this.tries = 0;
      this.retry = setTimeout(async () => {
        await visible();
        if (session === this.session) this.open();
      }, Math.min(1000 * 2 ** this.tries++, calm));
    }
    if (needsToken(session.error)) this.askForToken(session.error);
    this.tell();
  }

  /** @param {import('./members.js').ServerStatus} state of the server, as the gateway has it */
  takeState(state) {
    show(this.state, ...stateView(state));
    const needsLogin = state.state === 'waiting for a login', logsInHere = needsLogin && state.logsInHere === true;
    if (needsLogin === this.needsLogin && logsInHere === this.logsInHere) return;
    this.needsLogin = needsLogin;
    this.logsInHere = logsInHere;
    show(this.login, needsLogin && loginNotice(this.url, state));
    this.tools.renewLogin();
    this.showHead();
    this.tell();
  }

  /** tell has a screen reader say how the server is. */
  tell() {
    if (this.session) say(`The server ${conditions[conditionOf(this.session, this.needsLogin)].said}`);
  }

  showHead() {
    show(this.head, headline(this.session, this.about.name, this.needsLogin));
    show(this.trouble, trouble(this.session, () => this.open(), this.isLinked));
    show(this.told, aboutView(this.session, /** @type {any} */ (this.lists)));
    const title = this.session?.server?.serverInfo?.title || this.session?.server?.serverInfo?.name || this.about.name;
    document.title = title ? `${clip(title, 60)} – MCP server` : 'MCP server';
  }

  showConnect() {
    show(this.connect, connectView({
      name: this.name(), url: this.url, token: this.needsToken(), logsIn: this.isOAuth || this.about.login !== undefined, pastes: this.about.pastes,
    }));
  }

  /**
   * load asks for a list of the server.
   * @param {Session} session
   * @param {readonly [keyof Lists, string, string, string]} list
   */
  async load(session, [name, capability, method, member]) {
    if (session !== this.session) return;
    let fault, all;
    if (session.server?.capabilities?.[capability]) {
      try {
        all = await session.all(method, member);
      } catch (error) {
        if (name === 'templates' && /** @type {any} */ (error).code === -32601) all = []; // many servers have none
        else fault = error;
      }
    }
    if (session !== this.session) return;
    this.faults[name] = fault;
    if (all) this.lists[name] = all;
    this.update();
    if (fault instanceof Unreachable && !session.isOver && this.listTries++ < mostListTries) this.loads.get(name)?.(); // after a pause
  }

  /**
   * lacks reports whether the server says that it has none of a kind.
   * @param {string} capability
   */
  lacks(capability) { return this.session?.server !== undefined && !this.session.server.capabilities?.[capability]; }

  update() {
    this.showHead();
    for (const view of [this.tools, this.prompts, this.resources, this.logs]) view.update();
    for (const name of /** @type {const} */ (['tools', 'prompts', 'resources'])) {
      const tab = this.tabs?.get(name), n = (this.lists[name]?.length ?? 0) + (name === 'resources' ? this.lists.templates?.length ?? 0 : 0);
      if (tab) tab.textContent = `${name[0].toUpperCase()}${name.slice(1)}${n > 0 ? ` (${n})` : ''}`;
    }
  }

  /**
   * notified takes a notification of the server.
   * @param {Session} session
   * @param {string} method
   * @param {any} params
   */
  notified(session, method, params) {
    const changed = /^notifications\/(tools|prompts|resources)\/list_changed$/.exec(method);
    if (changed) {
      this.askState(); // a login may have been made, or have ended
      for (const [name, capability] of lists) if (capability === changed[1]) this.loads.get(name)?.();
    }
    else if (method === 'notifications/message') this.logs.add(params);
    else if (method === 'notifications/resources/updated') this.resources.changed(plain(params.uri));
  }

  /** @param {import('./transport.js').Refused} refused */
  askForToken(refused) {
    this.isRefused = true;
    this.isOAuth = /resource_metadata=/.test(refused.challenge);
    this.showConnect();
    const { isOAuth } = this, { login } = this.about, field = tokenField();
    show(field.fault, this.loginFault && clip(this.loginFault, 500));
    const logIn = login && button('Log in', () => beginLogin(login, this.url).catch(error => show(field.fault, clip(error.message, 500))), { class: 'main' });
    show(this.asks, tokenForm(field, this.tokenKey, () => this.open(),
      el('h2', { id: 'token-title' }, this.token() ? 'The gateway does not take this token' : 'The gateway wants a token'),
      isOAuth && el('p', {}, 'Clients get one from the issuer', login ? [' ', el('bdi', {}, clip(login.issuer, 200))] : '', '. ',
        login ? '' : 'This page cannot log in there, because oauth in the configuration of the gateway has no page-client-id: paste an access token for this URL.'),
      logIn, field.fault,
      el('p', { class: 'soft' }, 'The token stays in this tab, and ends with it.'),
      el('label', {}, login ? 'Or paste a token' : 'Token', field.input), el('div', { class: 'row' }, el('button', { type: 'submit', class: login ? '' : 'main' }, 'Connect'),
        this.token() && button('Forget the token', () => this.forgetToken()))));
    (logIn ?? field.input).focus();
  }
}

/** isLinked reports whether another site has led here, and nobody has loaded the page again since. */
function isLinked() {
  const [how] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType('navigation'));
  return how?.type !== 'reload' && document.getElementById('about')?.dataset.linked !== undefined;
}

/** listURL returns where the gateway lists its servers, if it has several; undefined where a proxy has renamed the path. */
function listURL() {
  const prefix = document.getElementById('about')?.dataset.listed, path = location.pathname.replace(/\/(mcp|sse)\/?$/, '');
  return prefix && path.endsWith(prefix) ? `${location.origin}${path.slice(0, -prefix.length)}/` : undefined;
}

/** themeSwitch is a button between light and dark; before somebody presses it, the page is as the browser wants it. */
function themeSwitch() {
  const root = document.documentElement, system = matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (root.dataset.theme ?? (system.matches ? 'dark' : 'light')) === 'dark';
  const made = button('', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    remember('theme', root.dataset.theme);
    tell();
  }, { class: 'icon', 'aria-label': 'Dark' });
  const tell = () => {
    made.textContent = isDark() ? '☀' : '☾';
    made.setAttribute('aria-pressed', String(isDark()));
    made.title = isDark() ? 'Light' : 'Dark';
  };
  const chosen = recall('theme');
  if (chosen === 'light' || chosen === 'dark') root.dataset.theme = chosen;
  system.addEventListener('change', tell);
  tell();
  return made;
}

if (typeof document !== 'undefined') new App();
