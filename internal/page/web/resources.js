// The resources and their templates: read them, and follow their changes.
import { el, show, rowsOf, copier, named, clip, plain, say } from './dom.js';
import { finder, fillList } from './list.js';
import { linkTo } from './connect.js';
import { prose } from './json.js';
import { contents, failure, keepers } from './result.js';
import { argument, valuesOf } from './prompts.js';
import { paced } from './session.js';

/** @typedef {import('./main.js').App} App */

/**
 * variables returns the variables of a template (RFC 6570). Those of a query can be left out.
 * @param {string} template
 * @returns {{ name: string, required: boolean }[]}
 */
export function variables(template) {
  return [...template.matchAll(/\{([+#./;?&]?)([^{}]*)\}/g)].flatMap(([, operator, names]) => names.split(',')
    .map(name => ({ name: name.replace(/(\*|:\d+)$/, ''), required: operator !== '?' && operator !== '&' })));
}

/**
 * expand puts values into a template (RFC 6570, without lists).
 * @param {string} template
 * @param {Record<string, string>} values
 */
export function expand(template, values) {
  return template.replace(/\{([+#./;?&]?)([^{}]*)\}/g, (_, operator, names) => {
    const isOpen = operator === '+' || operator === '#', isNamed = ';?&'.includes(operator) && operator !== '';
    const parts = names.split(',').map((/** @type {string} */ name) => name.replace(/(\*|:\d+)$/, '')).filter((/** @type {string} */ name) => Object.hasOwn(values, name) && values[name])
      .map((/** @type {string} */ name) => {
        const text = isOpen ? encodeURI(values[name]) : encodeURIComponent(values[name]);
        return isNamed ? `${name}=${text}` : text;
      });
    if (parts.length === 0) return '';
    const between = operator === '' || isOpen ? ',' : operator === '?' ? '&' : operator;
    return (operator === '+' ? '' : operator) + parts.join(between);
  });
}

const mostListed = 500;

/** ResourcesView shows the resources. */
export class ResourcesView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {Set<string>} */
    this.followed = new Set();
    this.uri = this.shown = '';
    this.readAgain = paced(() => this.read());
    const { search, list } = finder('resources', () => this.update());
    this.search = search;
    this.list = list;
    this.detail = el('div', { class: 'detail', tabindex: -1 });
    this.answer = el('div', { class: 'answer' });
    this.element = el('section', { class: 'panes', 'aria-label': 'Resources' }, el('div', { class: 'side' }, this.search, this.list), this.detail);
  }

  update() {
    const { resources = [], templates = [] } = this.app.lists, wanted = this.search.value.toLowerCase();
    const fits = (/** @type {any} */ one) => [one.title, one.name, one.uri ?? one.uriTemplate].map(part => clip(part, 10000)).join(' ').toLowerCase().includes(wanted);
    const row = (/** @type {any} */ one, /** @type {string} */ uri, /** @type {() => void} */ chosen) => el('li', {}, el('button', { type: 'button', 'aria-current': uri === this.shown ? 'true' : undefined, onclick: () => { chosen(); this.detail.focus(); } },
      el('span', { class: 'title' }, el('b', {}, named(one.title || one.name || uri, 100)), el('small', {}, ' ', clip(one.description, 120))), el('small', { class: 'about' }, named(uri, 200))));
    const found = [this.app.faults.resources, this.app.faults.templates].filter(Boolean);
    const part = (/** @type {string} */ title, /** @type {any[]} */ all, /** @type {(one: any) => HTMLLIElement} */ rowOf) => {
      const fitting = all.filter(fits);
      if (fitting.length === 0) return [];
      return [el('li', { class: 'part' }, title), ...rowsOf(fitting.slice(0, mostListed), rowOf),
        ...fitting.length > mostListed ? [el('li', { class: 'soft' }, `These are ${mostListed} of ${fitting.length}: find the others by their names.`)] : []];
    };
    fillList(this.list, ...found.map(fault => el('li', {}, failure(fault))),
      ...part('Resources', resources, one => row(one, plain(one.uri), () => this.choose(plain(one.uri), one))),
      ...part('Templates', templates, one => row(one, plain(one.uriTemplate), () => this.chooseTemplate(one))));
    if (resources.length + templates.length > 0 && this.list.childElementCount === 0) show(this.list, el('li', { class: 'soft' }, 'No resource fits.'));
    const address = new URLSearchParams(location.hash.slice(1));
    if (!this.shown && (address.has('resource') && this.app.lists.resources || address.has('template') && this.app.lists.templates)) {
      this.app.showPart?.('resources');
      this.fromAddress(address);
    }
    if (!this.shown) show(this.detail, resources.length + templates.length > 0 && el('p', { class: 'soft' }, 'Choose a resource to read it, or a template to say which one.'));
    if (resources.length + templates.length + found.length === 0) show(this.list, el('li', { class: 'soft' }, this.app.lists.resources || this.app.lacks('resources') ? 'The server has no resources.' : 'Not known without a session.'));
  }

  /**
   * fromAddress shows the resource or the template that the page's address names, and reads nothing.
   * @param {URLSearchParams} address
   */
  fromAddress(address) {
    const uri = address.get('resource'), text = address.get('template') ?? '';
    if (uri !== null) {
      this.choose(uri, this.app.lists.resources?.find(one => one.uri === uri), false);
      return;
    }
    const template = this.app.lists.templates?.find(one => one.uriTemplate === text);
    if (template) this.chooseTemplate(template, Object.fromEntries([...address].filter(([key]) => key !== 'template')));
    else show(this.detail, el('p', { class: 'soft' }, 'The address names a template that the server does not have: ', named(text, 100)));
  }

  /**
   * choose shows a resource, and reads it.
   * @param {string} uri
   * @param {any} [about]
   * @param {boolean} [reads] false: it waits until somebody wants it
   */
  choose(uri, about = {}, reads = true) {
    this.mark(about.uriTemplate ? plain(about.uriTemplate) : uri);
    this.uri = uri;
    const box = el('input', { type: 'checkbox', checked: this.followed.has(uri), onchange: () => this.follow(uri, box) });
    this.box = box;
    const follows = this.app.session?.server?.capabilities?.resources?.subscribe && el('label', { class: 'box' }, box, ' follow its changes');
    const address = () => new URLSearchParams({ resource: uri }).toString();
    this.app.toAddress(address);
    show(this.detail, el('div', { class: 'heading' }, el('h2', {}, named(about.title || about.name || uri, 200)), el('div', { class: 'copies' }, copier('Copy link', () => linkTo(address())))), el('p', {}, el('code', {}, clip(uri, 500)), ' ', el('small', {}, clip(about.mimeType, 100))),
      about.description && prose(about.description),
      el('div', { class: 'row' }, el('button', { type: 'button', class: 'main', onclick: () => this.read() }, 'Read'), follows), this.answer);
    show(this.answer);
    return reads ? this.read() : undefined;
  }

  /** @param {string} shown the URI or the template that is shown */
  mark(shown) {
    this.shown = shown;
    this.update();
  }

  async read() {
    const { uri } = this;
    try {
      const result = await this.app.session?.request('resources/read', { uri });
      const all = Array.isArray(result?.contents) ? result.contents : [];
      if (uri === this.uri) show(this.answer, el('div', { class: 'heading' }, el('p', { class: 'soft' }, `read at ${new Date().toLocaleTimeString()}`), keepers(uri, result)), ...all.map(contents), all.length === 0 && el('p', {}, 'It has no contents.'));
    } catch (error) {
      if (uri === this.uri) show(this.answer, failure(error));
    }
  }

  /**
   * follow subscribes to the changes of a resource, or ends that.
   * @param {string} uri
   * @param {HTMLInputElement} box
   */
  async follow(uri, box) {
    try {
      await this.app.session?.request(box.checked ? 'resources/subscribe' : 'resources/unsubscribe', { uri });
      if (box.checked) this.followed.add(uri);
      else this.followed.delete(uri);
    } catch (error) {
      box.checked = !box.checked;
      show(this.answer, failure(error));
    }
  }

  /** followAgain subscribes in another session to what was followed before. */
  async followAgain() {
    const { session } = this.app;
    for (const uri of [...this.followed]) {
      try {
        await session?.request('resources/subscribe', { uri });
      } catch {
        if (session !== this.app.session) return; // the next one tries
        this.followed.delete(uri);
        if (uri === this.uri && this.box) this.box.checked = false;
      }
    }
  }

  /** @param {string} uri of a resource that has changed */
  changed(uri) {
    say(`The resource has changed: ${clip(uri, 200)}`);
    if (uri === this.uri) this.readAgain();
  }

  /**
   * @param {any} template
   * @param {Record<string, string>} [given] values of its variables
   */
  chooseTemplate(template, given = {}) {
    this.mark(plain(template.uriTemplate));
    const text = plain(template.uriTemplate), ref = { type: 'ref/resource', uri: text };
    /** @type {() => Record<string, string>} */
    const others = () => valuesOf(fields);
    /** @type {import('./prompts.js').Argument[]} */
    const fields = variables(text).map(about => argument(this.app, ref, about, others, Object.hasOwn(given, about.name) ? given[about.name] : ''));
    const address = () => new URLSearchParams({ template: text, ...others() }).toString();
    this.app.toAddress(address);
    show(this.detail, el('div', { class: 'heading' }, el('h2', {}, named(template.title || template.name || text, 200)), el('div', { class: 'copies' }, copier('Copy link', () => linkTo(address())))), el('p', {}, el('code', {}, clip(text, 500))),
      template.description && prose(template.description),
      el('form', { oninput: () => this.app.toAddress(address), onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this.choose(expand(text, others()), template); } },
        ...fields.map(one => one.element), el('button', { type: 'submit', class: 'main' }, 'Read')));
  }
}
