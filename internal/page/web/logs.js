// The log messages of the server.
import { el, show, named, clip } from './dom.js';
import { tree } from './json.js';

/** @typedef {import('./main.js').App} App */

const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'], mostLines = 500;

/** @typedef {{ level: number, at: Date, logger: string, data: unknown }} Line */

/** LogsView shows the log. */
export class LogsView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {Line[]} */
    this.lines = [];
    this.filter = el('input', { type: 'search', 'aria-label': 'Filter', placeholder: 'Filter', oninput: () => this.fill() });
    this.lowest = el('select', { 'aria-label': 'From', onchange: () => this.setLevel() }, el('option', { value: '' }, 'what the server sends'),
      ...levels.map(level => el('option', { value: level }, `from ${level} on`)));
    this.told = el('p', { class: 'soft', 'aria-live': 'polite' });
    this.list = el('ol', { class: 'log', tabindex: 0, 'aria-label': 'Log messages of the server' });
    this.unseen = 0;
    this.element = el('div', { class: 'logged', hidden: true }, this.told, this.list);
    this.controls = el('div', { class: 'controls' }, this.filter, this.lowest);
    this.fill();
  }

  update() {
    const { session } = this.app;
    if (session?.server && !session.server.capabilities?.logging) show(this.told, 'The server does not say that it logs.');
  }

  /** setLevel asks the server of this session for messages from a level on, if one is chosen. */
  async setLevel() {
    this.fill();
    show(this.told);
    this.update();
    if (!this.lowest.value || !this.app.session?.server?.capabilities?.logging) return;
    try {
      await this.app.session.request('logging/setLevel', { level: this.lowest.value });
      show(this.told, `The server sends messages from ${this.lowest.value} on.`);
    } catch (error) {
      show(this.told, 'The server does not take the level: ', named(/** @type {Error} */ (error).message, 300));
    }
  }

  /** @param {any} params */
  add(params) {
    const line = { level: levels.indexOf(params.level), at: new Date(), logger: clip(params.logger, 100), data: params.data };
    this.lines.push(line);
    this.unseen = this.app.dock?.isSeen('log') ? 0 : this.unseen + 1;
    this.app.dock?.tell('log', this.unseen);
    if (this.lines.length > mostLines + 100) {
      this.lines = this.lines.slice(-mostLines);
      this.fill();
    } else if (this.passes(line)) {
      if (this.list.querySelector(':scope > .soft')) show(this.list);
      this.list.append(logRow(line));
    }
  }

  /** @param {Line} line */
  passes(line) {
    const lowest = levels.indexOf(this.lowest.value);
    return (line.level < 0 || line.level >= lowest) && `${line.logger} ${clip(line.data, 5000)}`.toLowerCase().includes(this.filter.value.toLowerCase());
  }

  fill() {
    show(this.list, ...this.lines.filter(line => this.passes(line)).map(logRow));
    if (this.list.childElementCount === 0) show(this.list, el('li', { class: 'soft' }, 'There are none.'));
  }
}

/** @param {Line} line */
function logRow({ at, level, logger, data }) {
  return el('li', {}, el('small', {}, at.toLocaleTimeString(), ' '),
    el('b', { class: level >= 4 ? 'bad' : level === 3 ? 'warn' : '' }, levels[level] ?? 'unknown'),
    ' ', named(logger, 100), ' ', typeof data === 'string' ? named(data, 5000) : tree(data, 1));
}
