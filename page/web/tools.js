// The tools: find one, fill in its form, call it, look at the result.
import { el, show, rowsOf, button, copier, named, clip, plain, took, count, say } from './dom.js';
import { formOf, jsonForm } from './form.js';
import { toolResult, failure } from './result.js';
import { asCurl } from './connect.js';
import { lossesOfTool, lossesOfAll } from './limits.js';
import { tree, text, prose } from './json.js';
import { withoutSecrets } from './secrets.js';

/** @typedef {import('./main.js').App} App */

/**
 * @typedef {object} Call
 * @property {string} tool
 * @property {any} arguments
 * @property {number} at
 * @property {number} ms
 * @property {string} outcome
 */

const unchecked = 'The arguments are not checked here, because that takes too long: the server checks them.';
const mostCalls = 20, longest = 8000; // characters of an address

/** ToolsView shows the tools. */
export class ToolsView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {any} */
    this.chosen = undefined;
    this.search = el('input', { type: 'search', placeholder: 'name, title, description', oninput: () => this.fill() });
    this.list = el('ul', { class: 'list' });
    this.told = el('div');
    this.detail = el('div', { class: 'detail', tabindex: -1 });
    this.past = el('div', { class: 'past' });
    this.element = el('section', { 'aria-labelledby': 'tools-title' },
      el('h2', { id: 'tools-title' }, 'Tools'), this.told,
      el('div', { class: 'two' }, el('div', {}, el('label', {}, 'Find', this.search), this.list, this.past), this.detail));
    this.showPast();
  }

  /** update shows the tools that there are now. */
  update() {
    const { tools } = this.app.lists;
    const fault = this.app.faults.tools, isKnown = tools || this.app.lacks('tools');
    show(this.told, fault ? failure(fault) : !isKnown && el('p', { class: 'soft' }, 'Not known yet.'),
      isKnown && !tools?.length && el('p', { class: 'soft' }, 'The server has no tools.'), tools && losses(lossesOfAll(tools, this.app.about.clients)));
    this.fill();
    if (this.chosen) {
      const same = tools?.find(tool => tool.name === this.chosen.name);
      if (same && JSON.stringify(same) !== JSON.stringify(this.chosen)) this.renew(same);
    } else if (tools) {
      this.fromAddress();
    }
  }

  /**
   * renew shows another definition of the tool that is chosen, and keeps its arguments and its answer. It
   * waits for the end of a call.
   * @param {any} tool
   */
  renew(tool) {
    if (this.run?.disabled) {
      this.isDue = true;
      return;
    }
    const shown = [...this.answer?.childNodes ?? []];
    this.choose(tool, this.read(), this.isOfAddress === true);
    this.answer?.replaceChildren(...shown);
  }

  fill() {
    const wanted = this.search.value.toLowerCase(), tools = this.app.lists.tools ?? [];
    const fitting = tools.filter(tool => `${plain(tool.name)} ${titleOf(tool)} ${plain(tool.description)}`.toLowerCase().includes(wanted));
    show(this.list, ...rowsOf(fitting, tool => el('li', {},
      el('button', { type: 'button', 'aria-current': tool.name === this.chosen?.name ? 'true' : undefined, onclick: () => { this.choose(tool); this.detail.focus(); } },
        el('b', {}, named(titleOf(tool), 100)), titleOf(tool) !== tool.name && el('small', {}, ' ', named(tool.name, 100)),
        ...hints(tool), tool.description && el('small', { class: 'about' }, clip(tool.description, 120))))));
    if (tools.length > 0 && fitting.length === 0) show(this.list, el('li', { class: 'soft' }, 'No tool fits.'));
  }

  /** fromAddress chooses the tool that the page's address names, with its arguments, and runs nothing. */
  fromAddress() {
    const address = new URLSearchParams(location.hash.slice(1)), name = address.get('tool');
    if (name === null) return;
    const tool = this.app.lists.tools?.find(one => one.name === name);
    if (!tool) {
      show(this.detail, el('p', { class: 'soft' }, 'The address names a tool that the server does not have: ', named(name, 100)));
      return;
    }
    let args;
    try { args = JSON.parse(address.get('arguments') ?? ''); } catch { /* none, or no JSON */ }
    this.choose(tool, args, true);
  }

  /**
   * choose shows a tool.
   * @param {any} tool
   * @param {any} [args]
   * @param {boolean} [isOfAddress] whether the page's address has chosen it: whoever made the link has
   */
  choose(tool, args, isOfAddress = false) {
    this.chosen = tool;
    this.isOfAddress = isOfAddress;
    this.isDue = false;
    this.fill();
    /** @type {import('./form.js').Form} */
    this.form = formOf(tool.inputSchema, args);
    const tooMuch = args !== undefined && !this.form.expresses(args); // for a form
    if (tooMuch) this.form = jsonForm(tool.inputSchema, args);
    const place = el('div', {}, this.form.element);
    const asJSON = el('input', { type: 'checkbox', checked: tooMuch, onchange: () => {
      const value = this.read();
      this.form = asJSON.checked ? jsonForm(tool.inputSchema, value) : formOf(tool.inputSchema, value);
      show(place, this.form.element);
    } });
    this.run = el('button', { type: 'submit', class: 'main' }, 'Call');
    this.progress = el('div', { class: 'progress' });
    this.answer = el('div', { class: 'answer' });
    this.copied = el('div', { role: 'status' });
    const form = el('form', { novalidate: true, onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this.submit(false); }, oninput: (/** @type {Event} */ event) => {
      if (event.target !== asJSON) this.isOfAddress = false;
      this.toAddress();
    } },
      place,
      el('div', { class: 'row' }, this.run, el('label', { class: 'box' }, asJSON, ' as JSON')));
    show(this.detail,
      el('h3', {}, named(titleOf(tool), 200), ' ', titleOf(tool) !== tool.name && el('code', {}, clip(tool.name, 200)), ...hints(tool)),
      tool.description && prose(tool.description),
      losses(lossesOfTool(tool, this.app.name(), this.app.about.clients)),
      form, this.progress, this.answer,
      el('div', { class: 'row' },
        this.app.curls() && copier('as curl', () => asCurl(this.app.url, this.message(), this.app.needsToken()), 'Copy the call as curl'),
        copier('as JSON-RPC', () => JSON.stringify(this.message()), 'Copy the call as JSON-RPC'),
        copier('its address', () => {
          const address = this.address();
          if (this.copied) show(this.copied, address.length > longest && el('p', { class: 'warn' }, 'The arguments are too long for an address: it names the tool alone.'));
          return `${location.origin}${location.pathname}${location.search}#${address.length > longest ? this.address({}) : address}`;
        }, 'Copy its address, which shows this call')), this.copied,
      el('details', {}, el('summary', {}, 'Definition'), tree(tool, 3)));
    this.toAddress();
  }

  /** read returns the arguments as they are, without those that are no JSON yet. */
  read() {
    try { return this.form?.read(); } catch { return undefined; }
  }

  /** message returns the call for others, with a sign for what is secret, and says so. */
  message() {
    const args = this.read() ?? {}, open = withoutSecrets(args, this.chosen.inputSchema, '…');
    if (this.copied) show(this.copied, JSON.stringify(open) !== JSON.stringify(args) && el('p', { class: 'warn' }, 'It has … where something is secret: put that in.'));
    return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: this.chosen.name, arguments: open } };
  }

  /** toAddress writes the call into the page's address. */
  toAddress() {
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      const address = this.address();
      if (address.length <= longest) history.replaceState(null, '', `#${address}`);
    }, 100);
  }

  /**
   * address is the part of the page's address that has the call, without what is secret.
   * @param {any} args
   */
  address(args = this.read()) {
    const address = new URLSearchParams({ tool: this.chosen.name }), open = withoutSecrets(args, this.chosen.inputSchema);
    if (open && Object.keys(open).length > 0) address.set('arguments', JSON.stringify(open));
    return address.toString();
  }

  /**
   * submit calls the tool, if its arguments fit or the user insists.
   * @param {boolean} anyway
   */
  async submit(anyway) {
    const { app, chosen: tool } = this, session = app.session;
    if (!this.form || !this.run || this.run.disabled || !this.answer || !this.progress) return;
    const { run, answer } = this;
    run.disabled = true;
    const { value, faults, isChecked } = await this.form.check();
    run.disabled = false;
    if (run !== this.run) return; // another tool has been chosen meanwhile
    if (faults.length > 0 && !anyway) {
      say(`Not called: ${count(faults.length, 'fault')}`);
      show(this.answer, el('p', { class: 'bad' }, `Not called: ${count(faults.length, 'fault')} in the arguments. `,
        value !== undefined && button('Call it anyway', () => this.submit(true), { class: 'small' })));
      return;
    }
    if (!session || session.state !== 'ready' && session.state !== 'starting') {
      show(this.answer, el('p', { class: 'bad' }, 'Not called: there is no session.'));
      return;
    }
    const isOfStranger = this.isOfAddress === true && tool.annotations?.readOnlyHint !== true;
    run.disabled = true;
    if (!(isOfStranger || isDestructive(tool)) || await confirmed(tool, withoutSecrets(value ?? {}, tool.inputSchema, '…'), isOfStranger)) await this.call(session, tool, value ?? {}, isChecked);
    run.disabled = false;
    if (run === this.run && this.isDue) this.update();
  }

  /**
   * call calls the tool.
   * @param {import('./session.js').Session} session
   * @param {any} tool
   * @param {any} args
   * @param {boolean} isChecked whether they are known to fit
   */
  async call(session, tool, args, isChecked) {
    const { answer, progress } = this;
    if (!answer || !progress) return;
    const cancelling = new AbortController(), began = performance.now();
    const bar = el('progress', { 'aria-label': 'Progress of the call' }), message = el('span', {}), clock = el('span', { class: 'clock' });
    const tick = setInterval(() => { clock.textContent = took(performance.now() - began); }, 100);
    show(answer);
    show(progress, !isChecked && el('p', { class: 'warn' }, unchecked), bar, clock, button('Cancel', () => cancelling.abort()), message);
    progress.scrollIntoView({ block: 'nearest' });
    let outcome = 'ok', shown;
    try {
      const result = await session.request('tools/call', { name: tool.name, arguments: args }, {
        signal: cancelling.signal,
        onprogress: at => {
          if (isNumber(at?.total) && at.total > 0) bar.max = at.total;
          if (isNumber(at?.progress) && bar.hasAttribute('max')) bar.value = Math.max(0, at.progress);
          show(message, named(at?.message ?? (isNumber(at?.progress) ? `${at.progress}${isNumber(at.total) ? ` of ${at.total}` : ''}` : ''), 300));
        },
      });
      if (result?.isError) outcome = 'error';
      shown = toolResult(result, tool.outputSchema, uri => this.app.read(uri));
    } catch (error) {
      outcome = cancelling.signal.aborted ? 'cancelled' : 'failed';
      shown = failure(error);
    }
    clearInterval(tick);
    const ms = performance.now() - began;
    show(progress);
    show(answer, el('p', { class: 'soft' }, `${outcome} after ${took(ms)}`), !isChecked && el('p', { class: 'warn' }, unchecked), shown);
    answer.scrollIntoView({ block: 'nearest' });
    say(`${outcome} after ${took(ms)}`);
    this.remember({ tool: tool.name, arguments: withoutSecrets(args, tool.inputSchema) ?? {}, at: Date.now(), ms, outcome });
  }

  get key() { return `calls ${location.pathname}`; }

  /** @returns {Call[]} */
  calls() {
    try {
      const calls = JSON.parse(sessionStorage.getItem(this.key) ?? '[]');
      return Array.isArray(calls) ? calls : [];
    } catch {
      return [];
    }
  }

  /** @param {Call} call */
  remember(call) {
    try {
      sessionStorage.setItem(this.key, JSON.stringify([call, ...this.calls()].slice(0, mostCalls)));
    } catch { /* the arguments are too large to keep */ }
    this.showPast();
  }

  showPast() {
    const calls = this.calls();
    show(this.past, calls.length > 0 && el('details', { open: true }, el('summary', {}, `${count(calls.length, 'call')} of this tab`),
      el('ul', { class: 'list' }, ...calls.map(call => el('li', {}, el('button', { type: 'button', onclick: () => {
        const tool = this.app.lists.tools?.find(one => one.name === call.tool);
        if (tool) this.choose(tool, call.arguments);
      } }, el('b', {}, named(call.tool, 100)), ' ', el('small', {}, `${clip(call.outcome, 20)} after ${took(Number(call.ms))}, ${new Date(Number(call.at)).toLocaleTimeString()}`),
      el('small', { class: 'about' }, clip(call.arguments, 100))))))));
  }
}

/** @param {any} tool @returns {string} */
function titleOf(tool) { return plain(tool.title || tool.annotations?.title || tool.name); }

/** @param {any} tool */
function isDestructive(tool) { return tool.annotations?.destructiveHint === true && tool.annotations?.readOnlyHint !== true; }

/** @param {unknown} value @returns {value is number} JSON has numbers that are infinite here */
function isNumber(value) { return Number.isFinite(value); }

/** @param {any} tool */
function hints(tool) {
  const { readOnlyHint, idempotentHint } = tool.annotations ?? {};
  return [tool.execution?.taskSupport === 'required' && 'as a task alone', readOnlyHint === true && 'reads only', isDestructive(tool) && 'destructive', idempotentHint === true && 'idempotent']
    .filter(hint => typeof hint === 'string').map(hint => el('span', { class: hint === 'destructive' ? 'hint bad' : 'hint' }, hint));
}

/** @param {string[]} all */
function losses(all) {
  return all.length > 0 && el('details', { class: 'losses' }, el('summary', {}, count(all.length, 'client limit'), ' broken'), el('ul', {}, ...all.map(one => el('li', {}, one))));
}

/**
 * confirmed asks before a destructive tool runs, or a call that the page's address has brought.
 * @param {any} tool
 * @param {any} args
 * @param {boolean} isOfAddress
 * @returns {Promise<boolean>}
 */
function confirmed(tool, args, isOfAddress) {
  return new Promise(resolve => {
    const dialog = el('dialog', { 'aria-labelledby': 'confirm-title', onclose: () => { dialog.remove(); resolve(dialog.returnValue === 'run'); } },
      el('h3', { id: 'confirm-title' }, isDestructive(tool) ? 'Run a destructive tool?' : 'Run a call of a link?'),
      isDestructive(tool) && el('p', {}, named(titleOf(tool), 200), ' says that it may destroy something.'),
      isOfAddress && el('p', {}, 'The address of the page has chosen ', named(titleOf(tool), 200), ' and its arguments. Run it only if you know who made the link.'),
      el('p', {}, 'Its arguments:'), el('pre', { tabindex: 0 }, text(JSON.stringify(args, null, 2))),
      el('div', { class: 'row' }, button('Do not run it', () => dialog.close('')), button('Run it', () => dialog.close('run'), { class: 'danger' })));
    document.body.append(dialog);
    dialog.showModal();
  });
}
