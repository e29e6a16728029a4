// The tools: find one, fill in its form, call it, look at the result.
import { el, show, rowsOf, button, copier, named, clip, plain, count, say } from './dom.js';
import { finder, fillList } from './list.js';
import { formOf, jsonForm } from './form.js';
import { failure } from './result.js';
import { Call, Calls } from './calls.js';
import { lossesOfTool, lossesOfAll } from './limits.js';
import { tree, text, prose } from './json.js';
import { withoutSecrets } from './secrets.js';
import { asCurl, linkTo, longest } from './connect.js';
import { loginButton } from './serverlogin.js';

/** @typedef {import('./main.js').App} App */

const unchecked = 'The arguments are not checked here: that takes too long, or the script that does it cannot be loaded. The server checks them.';

/** ToolsView shows the tools. */
export class ToolsView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {any} */
    this.chosen = undefined;
    /** @type {Map<string, { tool: any, form: import('./form.js').Form, isJSON: boolean, isOfAddress: boolean }>} */
    this.left = new Map(); // the forms of tools that were chosen before
    const { search, list } = finder('tools', () => this.fill());
    this.search = search;
    this.list = list;
    this.isQuiet = false; // whether the page itself has chosen the tool, so that its address stays
    this.told = el('div');
    this.detail = el('div', { class: 'detail', tabindex: -1 });
    /** @type {HTMLInputElement | undefined} */
    this.asJSON = undefined;
    /** @type {import('./form.js').Form | undefined} */
    this.form = undefined;
    this.calls = new Calls(call => this.chooseCall(call));
    this.shown = el('div', { class: 'answer' }); // the call that is shown, or why there is none
    this.element = el('section', { class: 'panes', 'aria-label': 'Tools' },
      el('div', { class: 'side' }, this.search, this.told, this.list, this.calls.element), this.detail);
  }

  /** update shows the tools that there are now. */
  update() {
    const { tools } = this.app.lists;
    const fault = this.app.faults.tools, isKnown = tools || this.app.lacks('tools');
    show(this.told, fault ? failure(fault) : !isKnown && el('p', { class: 'soft' }, 'Not known without a session.'),
      isKnown && !tools?.length && el('p', { class: 'soft' }, 'The server has no tools.'), tools && losses(lossesOfAll(tools, this.app.about.clients)));
    this.fill();
    if (this.chosen) {
      const same = tools?.find(tool => tool.name === this.chosen.name);
      if (!same && tools && this.isQuiet && !this.calls.chosen) this.chooseFirst(tools);
      else if (same && JSON.stringify(same) !== JSON.stringify(this.chosen)) this.renew(same);
    } else if (tools) {
      const address = new URLSearchParams(location.hash.slice(1));
      if (address.has('tool')) this.fromAddress(address);
      else if (!this.calls.chosen) this.chooseFirst(tools);
    }
  }

  /**
   * chooseFirst shows a tool before somebody has chosen one.
   * @param {any[]} tools
   */
  chooseFirst(tools) {
    if (tools.length === 0) return;
    this.isQuiet = true;
    try { this.choose(tools[0]); } catch { this.chosen = undefined; } // this page cannot show it, as its row says
  }

  /** renewLogin shows the tool that is chosen again, once it has come to be that of a login, or is so no more. */
  renewLogin() {
    if (this.chosen?.name !== 'login') return;
    const { isQuiet } = this;
    this.choose(this.chosen, this.read(), this.isOfAddress === true, this.calls.chosen, this.form);
    this.isQuiet = isQuiet;
  }

  /**
   * isLogin reports whether a tool is the one by which agents get the link of a login, while people have a button for
   * that here: it is alone then.
   * @param {any} tool
   */
  isLogin(tool) { return this.app.logsInHere && tool.name === 'login' && this.app.lists.tools?.length === 1; }

  /**
   * renew shows another definition of the tool that is chosen, and keeps its arguments and its call. The form
   * stays as it is, with what is half typed, unless it asks for something else now: then what was typed as a
   * secret goes, because the other form may not call it one.
   * @param {any} tool
   */
  renew(tool) {
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    const before = this.chosen.inputSchema, asksTheSame = JSON.stringify(tool.inputSchema) === JSON.stringify(before);
    let args = this.read();
    if (!asksTheSame) args = withoutSecrets(args, before);
    if (!asksTheSame && this.isOfAddress) args = withoutSecrets(args, tool.inputSchema); // as in fromAddress
    this.choose(tool, args, this.isOfAddress === true, this.calls.chosen, asksTheSame ? this.form : undefined);
    if (focused?.isConnected) focused.focus();
  }

  /**
   * chooseCall shows a call that has been made.
   * @param {Call} call
   */
  chooseCall(call) {
    this.isQuiet = false;
    const tool = this.app.lists.tools?.find(one => one.name === call.about.tool);
    if (tool) {
      this.choose(tool, call.about.arguments, false, call);
    } else {
      this.chosen = undefined;
      this.app.toAddress(undefined);
      this.showCall(call);
      show(this.detail, el('p', { class: 'soft' }, 'The server does not have the tool ', named(call.about.tool, 100), ' now.'), this.shown);
      this.fill();
    }
    this.detail.focus();
  }

  /** @param {Call | undefined} call */
  showCall(call) {
    this.calls.show(call);
    show(this.shown, call ? call.element : el('p', { class: 'soft' }, 'The result is shown here.'));
    if (this.run) this.run.disabled = call?.isRunning === true || this.chosen !== undefined && isTask(this.chosen);
  }

  fill() {
    const wanted = this.search.value.toLowerCase(), tools = this.app.lists.tools ?? [];
    const fitting = tools.filter(tool => `${plain(tool.name)} ${titleOf(tool)} ${plain(tool.description)}`.toLowerCase().includes(wanted));
    fillList(this.list, ...rowsOf(fitting, tool => el('li', {},
      el('button', { type: 'button', 'aria-current': tool.name === this.chosen?.name ? 'true' : undefined, onclick: () => { this.chooseAgain(tool); this.detail.focus(); } },
        el('span', { class: 'title' }, el('b', {}, named(titleOf(tool), 100)), titleOf(tool) !== tool.name && el('small', {}, ' ', named(tool.name, 100)),
          isDestructive(tool) && el('span', { class: 'hint bad' }, 'destructive')),
        el('small', { class: 'about' }, clip(tool.description, 200))))));
    if (tools.length > 0 && fitting.length === 0) show(this.list, el('li', { class: 'soft' }, 'No tool fits.'));
  }

  /**
   * fromAddress chooses the tool that the page's address names, with its arguments, and runs nothing. What is
   * secret is not of an address, and the question before a call would hide it.
   * @param {URLSearchParams} address
   */
  fromAddress(address) {
    const name = address.get('tool') ?? '';
    this.isQuiet = false;
    const tool = this.app.lists.tools?.find(one => one.name === name);
    if (!tool) {
      show(this.detail, el('p', { class: 'soft' }, 'The address names a tool that the server does not have: ', named(name, 100)));
      return;
    }
    let args;
    try { args = JSON.parse(address.get('arguments') ?? ''); } catch { /* none, or no JSON */ }
    this.choose(tool, withoutSecrets(args, tool.inputSchema), true);
  }

  /**
   * choose shows a tool.
   * @param {any} tool
   * @param {any} [args]
   * @param {boolean} [isOfAddress] whether the page's address has chosen it: whoever made the link has. It stays
   *   so until a call of it is confirmed: an argument that is edited does not make the others the user's.
   * @param {Call} [call] to show with it
   * @param {import('./form.js').Form} [form] of the same schema, to go on with
   * @param {boolean} [wasJSON] whether that form is one of JSON
   */
  choose(tool, args, isOfAddress = false, call = undefined, form = undefined, wasJSON = this.asJSON?.checked === true) {
    if (this.chosen && this.form) this.left.set(this.chosen.name, { tool: this.chosen, form: this.form, isJSON: this.asJSON?.checked === true, isOfAddress: this.isOfAddress === true });
    this.chosen = tool;
    this.isOfAddress = isOfAddress;
    this.fill();
    let shown = form ?? formOf(tool.inputSchema, args);
    const tooMuch = !form && args !== undefined && !shown.expresses(args); // for a form
    if (tooMuch) shown = jsonForm(tool.inputSchema, args);
    this.form = shown;
    const place = el('div', {}, shown.element);
    const isJSON = form ? wasJSON : tooMuch;
    const asJSON = el('input', { type: 'checkbox', checked: isJSON, onchange: () => {
      const why = this.change(asJSON.checked);
      if (why) asJSON.checked = !asJSON.checked;
      if (this.copied) show(this.copied, why && el('p', { class: 'warn' }, asJSON.checked ? 'It stays JSON: ' : 'It stays a form: ', why));
      if (this.form) show(place, this.form.element);
    } });
    this.asJSON = asJSON;
    this.run = el('button', { type: 'submit', class: 'main' }, 'Call');
    this.copied = el('div', { role: 'status' });
    const copies = el('div', { class: 'copies' },
      copier('Copy link', () => {
        const address = this.address();
        if (this.copied) show(this.copied, address.length > longest && el('p', { class: 'warn' }, 'The arguments are too long for an address: it names the tool alone.'));
        return linkTo(address.length > longest ? this.address({}) : address);
      }),
      this.app.curls() && copier('Copy as curl', () => asCurl(this.app.url, this.message(), this.app.needsToken())),
      copier('Copy as JSON-RPC', () => JSON.stringify(this.message())));
    if (this.isLogin(tool)) {
      show(this.detail, el('div', { class: 'heading' }, el('h2', {}, named(titleOf(tool), 200), ' ', el('code', {}, 'login'))),
        el('p', {}, 'Agents call this tool for a link that their user visits. Here the button leads there:'), loginButton(this.app.url, { class: 'main' }));
      this.showCall(call);
      return; // the address does not name it: the tool is gone after the login
    }
    const changed = () => {
      this.isQuiet = false;
      this.toAddress();
    };
    const ask = el('form', { novalidate: true, onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this.submit(false); }, oninput: changed },
      place,
      el('div', { class: 'row middle' }, this.run, el('label', { class: 'box' }, asJSON, ' as JSON')));
    show(this.detail,
      el('div', { class: 'heading' }, el('h2', {}, named(titleOf(tool), 200), ' ', titleOf(tool) !== tool.name && el('code', {}, clip(tool.name, 200)), ...hints(tool)), copies),
      tool.description && prose(tool.description),
      isTask(tool) && el('p', { class: 'warn' }, 'This tool runs only as a task, and this page starts none: use a client that does.'),
      losses(lossesOfTool(tool, this.app.name(), this.app.about.clients)),
      el('div', { class: 'work' }, el('div', { class: 'asks' }, ask, this.copied, el('details', {}, el('summary', {}, 'Definition'), tree(tool, 3))), this.shown));
    this.showCall(call);
    this.toAddress();
  }

  /**
   * change puts the arguments into the other kind of form. It returns why it does not: nothing that is typed
   * is lost.
   * @param {boolean} toJSON
   */
  change(toJSON) {
    const { form, chosen: { inputSchema } } = this;
    if (!form) return '';
    let value;
    try {
      value = form.read();
    } catch (error) {
      const { control, message } = /** @type {import('./form.js').Wrong} */ (error), name = control.name.textContent;
      return `${name ? `${clip(name, 100)}: ` : ''}${clip(message, 300)}`;
    }
    const other = toJSON ? jsonForm(inputSchema, value) : formOf(inputSchema, value);
    if (!toJSON && !other.expresses(value)) return 'the form has no fields for all of it.';
    this.form = other;
    return '';
  }

  /**
   * chooseAgain shows a tool with the form that it had when another one was chosen.
   * @param {any} tool
   */
  chooseAgain(tool) {
    const left = this.left.get(tool.name);
    this.isQuiet = false;
    const isSame = left && JSON.stringify(left.tool.inputSchema) === JSON.stringify(tool.inputSchema);
    if (isSame) this.choose(tool, undefined, left.isOfAddress, undefined, left.form, left.isJSON);
    else this.choose(tool);
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
    if (!this.isQuiet) this.app.toAddress(() => this.address());
  }

  /**
   * address is the part of the page's address that has the call, without what is secret.
   * @param {any} args
   */
  address(args = this.read()) {
    const address = new URLSearchParams({ tool: plain(this.chosen.name) }), open = withoutSecrets(args, this.chosen.inputSchema);
    if (open && Object.keys(open).length > 0) address.set('arguments', JSON.stringify(open));
    return address.toString();
  }

  /**
   * submit calls the tool, if its arguments fit or the user insists.
   * @param {boolean} anyway
   */
  async submit(anyway) {
    const { app, chosen: tool, form, run } = this, session = app.session;
    if (!form || !run || run.disabled) return;
    run.disabled = true;
    show(this.shown, el('p', { class: 'soft' }, 'Checking the arguments …'));
    const { value, faults, isChecked } = await form.check();
    const isShown = () => this.chosen?.name === tool.name; // another one may have been chosen meanwhile
    if (!isShown()) return;
    show(this.shown);
    if (faults.length > 0 && !anyway) {
      say(`Not called: ${count(faults.length, 'fault')}`);
      this.refuse(`${count(faults.length, 'fault')} in the arguments. `, value !== undefined && button('Call it anyway', () => this.submit(true), { class: 'small' }));
      return;
    }
    if (!session?.takesCalls) {
      this.refuse('there is no session.');
      return;
    }
    const args = value ?? {}, isOfStranger = this.isOfAddress === true && tool.annotations?.readOnlyHint !== true;
    if ((isOfStranger || isDestructive(tool)) && !await confirmed(tool, withoutSecrets(args, tool.inputSchema, '…'), isOfStranger)) {
      if (isShown()) this.showCall(this.calls.chosen); // what was there before
      return;
    }
    if (form === this.form) this.isOfAddress = false; // somebody has seen all of it, and wants it
    const call = new Call({ tool: tool.name, arguments: withoutSecrets(args, tool.inputSchema) ?? {}, at: Date.now(), ms: 0, outcome: 'running' });
    this.calls.add(call);
    const running = call.run(session, tool, args, uri => app.read(uri), isChecked ? '' : unchecked);
    if (isShown()) this.showCall(call);
    call.element.scrollIntoView({ block: 'nearest' });
    await running;
    if (call.about.outcome !== 'ok') app.askState(); // the server may wait for a login now
    this.calls.ended();
    if (call !== this.calls.chosen) return; // it is found among the calls
    if (this.run) this.run.disabled = false;
    if (document.activeElement === document.body) this.run?.focus({ preventScroll: true }); // it had the focus until it was disabled
    call.element.scrollIntoView({ block: 'nearest' });
  }

  /**
   * refuse says why the tool is not called.
   * @param {...import('./dom.js').Child} why
   */
  refuse(...why) {
    this.showCall(undefined);
    show(this.shown, el('p', { class: 'bad' }, 'Not called: ', ...why));
  }
}

/** @param {any} tool @returns {string} */
function titleOf(tool) { return plain(tool.title || tool.annotations?.title || tool.name); }

/** @param {any} tool */
function isTask(tool) { return tool.execution?.taskSupport === 'required'; }

/** @param {any} tool */
function isDestructive(tool) { return tool.annotations?.destructiveHint === true && tool.annotations?.readOnlyHint !== true; }

/** @param {any} tool */
function hints(tool) {
  const { readOnlyHint, idempotentHint } = tool.annotations ?? {};
  return [isTask(tool) && 'runs only as a task', readOnlyHint === true && 'reads only', isDestructive(tool) && 'destructive', idempotentHint === true && 'idempotent']
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
      isOfAddress && el('p', {}, 'The address of the page has chosen ', named(titleOf(tool), 200), ' and the arguments that you have not changed. Run it only if you know who made the link.'),
      el('p', {}, 'Its arguments:'), el('pre', { tabindex: 0 }, text(JSON.stringify(args, null, 2))),
      el('div', { class: 'row' }, button('Do not run it', () => dialog.close('')), button('Run it', () => dialog.close('run'), { class: 'danger' })));
    document.body.append(dialog);
    dialog.showModal();
  });
}
