// The prompts, and the completion of arguments.
import { el, show, rowsOf, copier, named, clip } from './dom.js';
import { prose } from './json.js';
import { contentBlock, failure, keepers } from './result.js';
import { finder, fillList } from './list.js';
import { linkTo } from './connect.js';

/** @typedef {import('./main.js').App} App */

/** @typedef {{ name: string, input: HTMLInputElement, element: HTMLElement }} Argument */

let lastList = 0;

/**
 * valuesOf returns the values of arguments by their names, of those that have one.
 * @param {Argument[]} fields
 * @returns {Record<string, string>}
 */
export function valuesOf(fields) {
  return Object.fromEntries(fields.filter(one => one.input.value !== '').map(one => [one.name, one.input.value]));
}

/**
 * argument is a field of text that the server may complete.
 * @param {App} app
 * @param {any} ref what the argument is of
 * @param {{ name: string, description?: string, required?: boolean }} about
 * @param {() => Record<string, string>} others the arguments so far
 * @param {string} [value] what it begins with
 * @returns {Argument}
 */
export function argument(app, ref, about, others, value = '') {
  const id = `list-${++lastList}`, list = el('datalist', { id });
  let later = 0, asked = 0;
  const complete = async () => {
    const mine = ++asked;
    try {
      const result = await app.session?.request('completion/complete', { ref, argument: { name: about.name, value: input.value }, context: { arguments: others() } });
      const values = Array.isArray(result?.completion?.values) ? result.completion.values : [];
      if (mine === asked) show(list, ...values.slice(0, 100).map((/** @type {unknown} */ value) => el('option', { value: clip(value, 500) })));
    } catch { /* it completes nothing */ }
  };
  const completes = app.session?.server?.capabilities?.completions;
  const input = el('input', {
    type: 'text', value, list: completes ? id : undefined, autocomplete: 'off', required: about.required === true,
    onfocus: () => { if (completes) complete(); },
    oninput: () => { clearTimeout(later); if (completes) later = setTimeout(complete, 200); },
  });
  const element = el('label', { class: 'field' }, el('bdi', {}, clip(about.name, 100)), about.required && el('span', { class: 'required' }, ' required'),
    input, about.description && el('small', { class: 'about' }, clip(about.description, 500)), list);
  return { name: about.name, input, element };
}

/** PromptsView shows the prompts. */
export class PromptsView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.chosen = ''; // the name of the prompt that is shown
    const { search, list } = finder('prompts', () => this.update());
    this.search = search;
    this.list = list;
    this.detail = el('div', { class: 'detail', tabindex: -1 });
    this.element = el('section', { class: 'panes', 'aria-label': 'Prompts' }, el('div', { class: 'side' }, this.search, this.list), this.detail);
  }

  update() {
    const prompts = this.app.lists.prompts ?? [];
    const fault = this.app.faults.prompts;
    const wanted = this.search.value.toLowerCase();
    const fitting = prompts.filter(prompt => [prompt.title, prompt.name, prompt.description].map(part => clip(part, 10000)).join(' ').toLowerCase().includes(wanted));
    fillList(this.list, fault ? el('li', {}, failure(fault)) : undefined, ...rowsOf(fitting, prompt => el('li', {}, el('button', { type: 'button', 'aria-current': prompt.name === this.chosen ? 'true' : undefined, onclick: () => { this.choose(prompt); this.detail.focus(); } },
      el('span', { class: 'title' }, el('b', {}, named(prompt.title || prompt.name, 100))), el('small', { class: 'about' }, clip(prompt.description, 200))))));
    if (prompts.length > 0 && fitting.length === 0) show(this.list, el('li', { class: 'soft' }, 'No prompt fits.'));
    if (!this.chosen) show(this.detail, prompts.length > 0 && el('p', { class: 'soft' }, 'Choose a prompt to see its arguments, and to get it.'));
    const isKnown = this.app.lists.prompts || this.app.lacks('prompts');
    const address = new URLSearchParams(location.hash.slice(1));
    if (!this.chosen && prompts.length > 0 && address.has('prompt')) {
      this.app.showPart?.('prompts');
      this.fromAddress(address);
    }
    if (prompts.length === 0 && !fault) show(this.list, el('li', { class: 'soft' }, isKnown ? 'The server has no prompts.' : 'Not known without a session.'));
  }

  /**
   * fromAddress chooses the prompt that the page's address names, with its arguments.
   * @param {URLSearchParams} address
   */
  fromAddress(address) {
    const name = address.get('prompt') ?? '', prompt = this.app.lists.prompts?.find(one => one.name === name);
    if (prompt) this.choose(prompt, Object.fromEntries([...address].filter(([key]) => key !== 'prompt')));
    else show(this.detail, el('p', { class: 'soft' }, 'The address names a prompt that the server does not have: ', named(name, 100)));
  }

  /**
   * choose shows a prompt.
   * @param {any} prompt
   * @param {Record<string, string>} [given] values of its arguments
   */
  choose(prompt, given = {}) {
    this.chosen = prompt.name;
    this.update();
    const ref = { type: 'ref/prompt', name: prompt.name };
    /** @type {() => Record<string, string>} */
    const others = () => valuesOf(fields);
    /** @type {Argument[]} */
    const fields = (Array.isArray(prompt.arguments) ? prompt.arguments : [])
      .filter((/** @type {any} */ about) => typeof about?.name === 'string')
      .map((/** @type {any} */ about) => argument(this.app, ref, about, others, Object.hasOwn(given, about.name) ? given[about.name] : ''));
    const address = () => new URLSearchParams({ prompt: String(prompt.name), ...others() }).toString();
    this.app.toAddress(address);
    const answer = el('div', { class: 'answer', 'aria-live': 'polite' });
    const get = async (/** @type {Event} */ event) => {
      event.preventDefault();
      try {
        const result = await this.app.session?.request('prompts/get', { name: prompt.name, arguments: others() });
        const messages = Array.isArray(result?.messages) ? result.messages : [];
        show(answer, keepers(prompt.name, result), result?.description && el('p', {}, named(result.description, 1000)),
          ...messages.map((/** @type {any} */ message) => el('div', { class: 'said' }, el('b', {}, clip(message?.role, 40)), contentBlock(message?.content, uri => this.app.read(uri)))));
      } catch (error) {
        show(answer, failure(error));
      }
    };
    show(this.detail, el('div', { class: 'heading' }, el('h2', {}, named(prompt.title || prompt.name, 200)), el('div', { class: 'copies' }, copier('Copy link', () => linkTo(address())))), prompt.description && prose(prompt.description),
      el('div', { class: 'work' }, el('form', { onsubmit: get, oninput: () => this.app.toAddress(address) }, ...fields.map(one => one.element), el('button', { type: 'submit', class: 'main' }, 'Get')), answer));
  }
}
