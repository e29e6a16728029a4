// The resources and their templates: read them, and follow their changes.
import { el, show, rowsOf, named, clip, plain, say } from './dom.js';
import { prose } from './json.js';
import { contents, failure } from './result.js';
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
    this.search = el('input', { type: 'search', placeholder: 'name, URI', oninput: () => this.update() });
    this.list = el('ul', { class: 'list' });
    this.detail = el('div', { class: 'detail', tabindex: -1 });
    this.answer = el('div', { class: 'answer' });
    this.element = el('section', { 'aria-labelledby': 'resources-title' }, el('h2', { id: 'resources-title' }, 'Resources'),
      el('div', { class: 'two' }, el('div', {}, el('label', {}, 'Find', this.search), this.list), this.detail));
  }

  update() {
    const { resources = [], templates = [] } = this.app.lists, wanted = this.search.value.toLowerCase();
    const fits = (/** @type {any} */ one) => [one.title, one.name, one.uri ?? one.uriTemplate].map(part => clip(part, 10000)).join(' ').toLowerCase().includes(wanted);
    const row = (/** @type {any} */ one, /** @type {string} */ uri, /** @type {() => void} */ chosen) => el('li', {}, el('button', { type: 'button', 'aria-current': uri === this.shown ? 'true' : undefined, onclick: () => { chosen(); this.detail.focus(); } },
      el('b', {}, named(one.title || one.name || uri, 100)), el('small', { class: 'about' }, named(uri, 200)), one.description && el('small', { class: 'about' }, clip(one.description, 120))));
    const found = [this.app.faults.resources, this.app.faults.templates].filter(Boolean);
    const part = (/** @type {string} */ title, /** @type {any[]} */ all, /** @type {(one: any) => HTMLLIElement} */ rowOf) => {
      const fitting = all.filter(fits);
      if (fitting.length === 0) return [];
      return [el('li', { class: 'part' }, title), ...rowsOf(fitting.slice(0, mostListed), rowOf),
        ...fitting.length > mostListed ? [el('li', { class: 'soft' }, `These are ${mostListed} of ${fitting.length}: find the others by their names.`)] : []];
    };
    show(this.list, ...found.map(fault => el('li', {}, failure(fault))),
      ...part('Resources', resources, one => row(one, plain(one.uri), () => this.choose(plain(one.uri), one))),
      ...part('Templates', templates, one => row(one, plain(one.uriTemplate), () => this.chooseTemplate(one))));
    if (resources.length + templates.length > 0 && this.list.childElementCount === 0) show(this.list, el('li', { class: 'soft' }, 'No resource fits.'));
    if (!this.shown) show(this.detail, resources.length + templates.length > 0 && el('p', { class: 'soft' }, 'Choose a resource to read it, or a template to say which one.'));
    if (resources.length + templates.length + found.length === 0) show(this.list, el('li', { class: 'soft' }, this.app.lists.resources || this.app.lacks('resources') ? 'The server has no resources.' : 'Not known without a session.'));
  }

  /**
   * choose shows a resource, and reads it.
   * @param {string} uri
   * @param {any} [about]
   */
  choose(uri, about = {}) {
    this.mark(about.uriTemplate ? plain(about.uriTemplate) : uri);
    this.uri = uri;
    const box = el('input', { type: 'checkbox', checked: this.followed.has(uri), onchange: () => this.follow(uri, box) });
    this.box = box;
    const follows = this.app.session?.server?.capabilities?.resources?.subscribe && el('label', { class: 'box' }, box, ' follow its changes');
    show(this.detail, el('h3', {}, named(about.title || about.name || uri, 200)), el('p', {}, el('code', {}, clip(uri, 500)), ' ', el('small', {}, clip(about.mimeType, 100))),
      about.description && prose(about.description),
      el('div', { class: 'row' }, el('button', { type: 'button', class: 'main', onclick: () => this.read() }, 'Read'), follows), this.answer);
    show(this.answer);
    return this.read();
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
      if (uri === this.uri) show(this.answer, el('p', { class: 'soft' }, `read at ${new Date().toLocaleTimeString()}`), ...all.map(contents), all.length === 0 && el('p', {}, 'It has no contents.'));
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

  /** @param {any} template */
  chooseTemplate(template) {
    this.mark(plain(template.uriTemplate));
    const text = plain(template.uriTemplate), ref = { type: 'ref/resource', uri: text };
    /** @type {() => Record<string, string>} */
    const others = () => valuesOf(fields);
    /** @type {import('./prompts.js').Argument[]} */
    const fields = variables(text).map(about => argument(this.app, ref, about, others));
    show(this.detail, el('h3', {}, named(template.title || template.name || text, 200)), el('p', {}, el('code', {}, clip(text, 500))),
      template.description && prose(template.description),
      el('form', { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this.choose(expand(text, others()), template); } },
        ...fields.map(one => one.element), el('button', { type: 'submit', class: 'main' }, 'Read')));
  }
}
