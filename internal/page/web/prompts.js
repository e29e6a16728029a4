// The prompts, and the completion of arguments.
import { el, show, rowsOf, named, clip } from './dom.js';
import { prose } from './json.js';
import { contentBlock, failure } from './result.js';

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
 * @returns {Argument}
 */
export function argument(app, ref, about, others) {
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
    type: 'text', list: completes ? id : undefined, autocomplete: 'off', required: about.required === true,
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
    this.list = el('ul', { class: 'list' });
    this.detail = el('div', { class: 'detail', tabindex: -1 });
    this.element = el('section', { 'aria-labelledby': 'prompts-title' }, el('h2', { id: 'prompts-title' }, 'Prompts'),
      el('div', { class: 'two' }, this.list, this.detail));
  }

  update() {
    const prompts = this.app.lists.prompts ?? [];
    const fault = this.app.faults.prompts;
    show(this.list, fault ? el('li', {}, failure(fault)) : undefined, ...rowsOf(prompts, prompt => el('li', {}, el('button', { type: 'button', 'aria-current': prompt.name === this.chosen ? 'true' : undefined, onclick: () => { this.choose(prompt); this.detail.focus(); } },
      el('b', {}, named(prompt.title || prompt.name, 100)), prompt.description && el('small', { class: 'about' }, clip(prompt.description, 120))))));
    if (!this.chosen) show(this.detail, prompts.length > 0 && el('p', { class: 'soft' }, 'Choose a prompt to see its arguments, and to get it.'));
    const isKnown = this.app.lists.prompts || this.app.lacks('prompts');
    if (prompts.length === 0 && !fault) show(this.list, el('li', { class: 'soft' }, isKnown ? 'The server has no prompts.' : 'Not known without a session.'));
  }

  /** @param {any} prompt */
  choose(prompt) {
    this.chosen = prompt.name;
    this.update();
    const ref = { type: 'ref/prompt', name: prompt.name };
    /** @type {() => Record<string, string>} */
    const others = () => valuesOf(fields);
    /** @type {Argument[]} */
    const fields = (Array.isArray(prompt.arguments) ? prompt.arguments : [])
      .filter((/** @type {any} */ about) => typeof about?.name === 'string')
      .map((/** @type {any} */ about) => argument(this.app, ref, about, others));
    const answer = el('div', { class: 'answer', 'aria-live': 'polite' });
    const get = async (/** @type {Event} */ event) => {
      event.preventDefault();
      try {
        const result = await this.app.session?.request('prompts/get', { name: prompt.name, arguments: others() });
        const messages = Array.isArray(result?.messages) ? result.messages : [];
        show(answer, result?.description && el('p', {}, named(result.description, 1000)),
          ...messages.map((/** @type {any} */ message) => el('div', { class: 'said' }, el('b', {}, clip(message?.role, 40)), contentBlock(message?.content, uri => this.app.read(uri)))));
      } catch (error) {
        show(answer, failure(error));
      }
    };
    show(this.detail, el('h3', {}, named(prompt.title || prompt.name, 200)), prompt.description && prose(prompt.description),
      el('form', { onsubmit: get }, ...fields.map(one => one.element), el('button', { type: 'submit', class: 'main' }, 'Get')), answer);
  }
}
